// Package trainer runs jobs. It owns the pipeline, the model, the optimizers, the metrics and the
// model directory, and connects the packages below it, which do not import one another.
//
//	    RE                     ST                         EL + JL
//	reader.Reader --Pass--> sparsetable.Pull --pulled--> engine: Begin, Train, End --> release
//	          read_queue                  pull_queue
//
// Package flow runs the stages, which are those of AIBox §3, Figure 3: RE reads examples, ST pulls
// rows from the sparse table, EL+JL trains embeddings and the joint network. Each stage is one
// goroutine of a pipeline.Pipeline, with workers of its own inside. RE and ST run ahead as far as
// the queues allow. RE also announces the keys that it has read to the table; for that it may run
// further ahead, as far as the table looks ahead and pipeline.read_ahead_bytes has room. EL+JL
// trains mini-batches one after the other, with one optimizer step each, so a mini-batch sees every
// update of the one before.
//
// Train runs a job from start to model directory. Package inference evaluates and predicts from a
// model directory alone, through the same stages, but looks rows up instead of creating them.
//
// # A run
//
// This package has the steps of a run, in this order, and what happens when a step fails:
//
//	train.go       Train, and the run as a whole; its values are in run.go
//	prepare.go     outputs (outputs.go), data (package dataset), devices (devices.go), table
//	               (table.go), engine (runengine.go), and the model that the run starts from
//	               (package start), with what is taken over from it (warmstart.go, package
//	               takeover)
//	epochs.go      training until the epochs are used up; mini-batches are scored while the next
//	               one is trained (scoring.go), and the first ones are compared with the
//	               predictions of an earlier model (startrate.go)
//	evaluating.go  evaluating after each epoch, and keeping the best one (best.go)
//	snapshots.go   saving everything between two passes (image.go), as long as there is room
//	               (diskspace.go, dropping.go), and uploading it (package remotesnapshots)
//	finish.go      completing and committing the model (savemodel.go), unless it has learned
//	               nothing (diverged.go), and publishing it (publishing.go)
//	describe.go    the summary, with what bounded the speed (bounds.go), memory (memory.go) and
//	               warnings (warnings.go)
//	closing.go     the end of a run, however it ends; failure.go has what a run leaves behind if
//	               it makes no model
//
// A run keeps its state in a runstate.State, and reports its progress through package report.
// check.go and bench.go are not part of a run.
//
// # Interruptions
//
// Now and then, between two passes, Train saves everything that the rest of the run depends on
// (snapshots.go). If the process dies, the next Train of the same job resumes from there
// (interrupted.go, resume.go), even if files of its table are still on their way (package
// arriving). When Train is told to stop, it finishes the current pass and saves a last snapshot,
// within a time limit (stopped.go). A night whose model exists already is not trained again
// (already.go).
//
// If the table has lost a directory with its disk, the run goes back to what is intact elsewhere
// (recovery.go), or only the lost rows do (package refill). If that happens during training, the
// run begins again in the same process (diskfailure.go). A job leaves out directories whose disks
// have failed (leftout.go).
//
// # What decides the model's bits
//
// The model's bits depend only on the job's seed, data, model and optimizers. Each sum in the
// engine has a fixed order (packages internal/kernel and trainer/ops); rows are created from
// hash(seed, key) and counted at their first use; the reader's order does not depend on its
// threads. Queue depths, threads, pass size and passes that were read ahead but never trained do
// not influence the model.
package trainer
