// Package trainer is the job: it owns the pipeline, the model, the optimizers,
// the metrics and the model directory, and joins the packages below it, which
// do not know one another.
//
//	    RE                     ST                         EL + JL
//	reader.Reader --Pass--> sparsetable.Pull --pulled--> engine.train, release
//	          read_queue                  pull_queue
//
// (AIBox §3, Figure 3.) Each stage is one goroutine of a pipeline.Pipeline,
// with workers of its own inside. RE and ST run ahead as far as the queues
// allow, and RE, which announces to the table what it has read, beyond that as
// far as the table looks ahead and pipeline.read_ahead_bytes hold the passes;
// EL+JL takes mini-batches one after the other, one optimizer step each, so a
// mini-batch sees every update of the one before.
//
// Train runs a job from start to model directory. Evaluate and Predict work
// from a model directory alone, through the same stages with rows looked up
// instead of created.
//
// # What decides the model's bits
//
// Only the job's seed, data, model and optimizers. The engine's sums have one
// order each (package internal/kernel, trainer/ops); rows are created from
// hash(seed, key) and counted at their first use; the reader's order does not
// depend on its threads. Queue depths, threads, pass size and cancelled work
// ahead of the last step leave no trace.
package trainer
