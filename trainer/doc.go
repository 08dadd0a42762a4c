// Package trainer runs jobs: it owns the pipeline, the model, the optimizers, the
// metrics and the model directory, and connects the packages below it, which do not
// import one another.
//
//	    RE                     ST                         EL + JL
//	reader.Reader --Pass--> sparsetable.Pull --pulled--> engine: Begin, Train, End --> release
//	          read_queue                  pull_queue
//
// The stages, which package flow runs, are those of AIBox §3, Figure 3: RE reads examples, ST pulls
// rows from the sparse table, EL+JL trains embeddings and the joint network. Each stage is one
// goroutine of a pipeline.Pipeline, with workers of its own inside. RE and ST run ahead as far as
// the queues allow. RE also tells the table which keys it has read; for that it may run further
// ahead, as far as the table looks ahead and pipeline.read_ahead_bytes has room for the passes.
// EL+JL trains mini-batches one after the other, with one optimizer step each, so a mini-batch sees
// every update of the one before.
//
// Train runs a job from start to model directory. Package inference evaluates and predicts
// from a model directory alone, through the same stages with rows looked up
// instead of created.
//
// # A run
//
// What is in this package are the steps of a run, in this order, and what it does when something fails:
//
//	train.go       Train, and the whole of a run, whose values are in run.go
//	prepare.go     its outputs (outputs.go), its data (package dataset), its devices (devices.go), its table and its engine
//	               (table.go, runengine.go), and the model that it starts from (package start), of which package takeover
//	               decides what goes over (warmstart.go)
//	epochs.go      training until the epochs are used up; mini-batches are scored beside the next one (scoring.go), and the first
//	               ones compared with what an earlier model predicts (startrate.go)
//	evaluating.go  evaluating after each epoch, and keeping the best one (best.go)
//	snapshots.go   saving everything between two passes (image.go), as long as there is room (diskspace.go, dropping.go), and
//	               uploading it (package remotesnapshots)
//	finish.go      completing and committing the model (savemodel.go), unless it has learned nothing (diverged.go), and its
//	               publication (publishing.go)
//	describe.go    the summary, with what bounded the speed (bounds.go), the memory (memory.go) and warnings (warnings.go)
//	closing.go     the end of a run, however it ends; failure.go is what one leaves that makes no model
//
// A run keeps what it is in the middle of in a runstate.State, and tells others of itself by package report.
// What does not run a job is in check.go and bench.go.
//
// # Interruptions
//
// Between two passes, now and then, Train saves everything that the rest of the run
// depends on (snapshots.go). If the process dies, the next Train of the same job goes on
// from there (interrupted.go, resume.go), even if files of its table are still on their way
// (package arriving). When it is told to stop, it ends the present pass and saves a
// last snapshot, within a limit of time (stopped.go). A night whose model is there already is not
// trained again (already.go).
//
// If the table has lost a directory with its disk, the run goes back to what is whole elsewhere
// (recovery.go), or only the lost rows do (package refill). If that happens while it trains, it begins
// again in the same process (diskfailure.go). A job does without directories whose disks have failed
// (leftout.go).
//
// # What decides the model's bits
//
// The model's bits depend only on the job's seed, data, model and optimizers. Each sum
// in the engine has a fixed order (packages internal/kernel and trainer/ops); rows are
// created from hash(seed, key) and counted at their first use; the reader's order does
// not depend on its threads. Queue depths, threads, pass size and passes that were read
// ahead but never trained do not influence the model.
package trainer
