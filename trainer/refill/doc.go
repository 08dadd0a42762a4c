// Package refill recovers a table partially (CPR, §2.3). The rows of the lost directories go back
// to the newest snapshot in snapshots.remote or, if there is none, to the model that the run began
// with. Rows that were saved by priority since then go back to the newest of these saves. All other
// rows, and everything else, stay as they are in the newest local snapshot, from which the run
// resumes. The model differs from that of an undisturbed run, and records that.
//
// It is a separate step between the interrupted run and the resumed one: it opens the table without
// the lost files, refills it, takes a snapshot, and replaces RESUME.json by one that refers to
// that. So a crash at any instant leaves either the earlier state or a run whose table is complete.
// Meanwhile nothing else is in memory: the table, and the one that it is refilled from, share
// sparse_table.memory_bytes.
package refill
