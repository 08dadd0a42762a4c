// Package refill recovers a table partially (CPR, §2.3): the rows of the lost directories go back
// to the newest snapshot in snapshots.remote or, if there is none, to the model that the run began
// with; those that were saved by priority since go back to the newest of these saves. All other
// rows, and everything else, stay as they are in the newest local snapshot, from which the run goes
// on. The model is not that of an undisturbed run, and says so.
//
// It is a step of its own, between the interrupted run and the one that goes on: it opens the
// table without what is lost, refills it, takes a snapshot, and replaces RESUME.json by one
// that refers to that. So a crash at any instant leaves what was there before, or a run whose
// table is whole. Nothing else is in memory meanwhile: the table, and that which it is
// refilled from, share sparse_table.memory_bytes.
package refill
