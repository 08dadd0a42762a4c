// Package modeldir is the model directory: everything that evaluation, prediction and the next
// night's warm start need, and nothing else.
//
//	model_dir/
//	  MODEL.json          which generation is the model; replaced by rename
//	  gen-000002/         one training run
//	    MODEL.json        the manifest of this generation; without it, it is incomplete
//	    job.yaml          the effective job, with all defaults
//	    statistics.json   data statistics (means and deviations of the first scan)
//	    dense-0000001875  dense parameters, optimizer state (package tensorfile)
//	    table/            the embedding table, snapshots of package sparsetable,
//	    table-dirs.json   or the directories elsewhere that hold it; OWNER.json in each
//	                      says whose it is (package outside)
//	    reports/          reports of the run
//	    RESUME.json       what a process needs to resume the run if it is interrupted
//	                      (resume.go); a committed model has none
//	    RESTORE.json      which generation from elsewhere this one will be, until it is
//	                      complete (restore.go)
//	    DISCARDED         it was restored, and given up (discarded.go)
//	    LOCK              shared by those that read the model
//	  LOCK                held by the run that writes
//	  summary.json, metrics.jsonl, tensorboard/, quarantine.jsonl
//	                      reports of the run that made the model: links to those in its
//	                      generation
//	  summary-failed.json, quarantine-failed.jsonl
//	                      why the last run made no model, and its bad rows; the next
//	                      run that makes one removes them
//
// # Commit
//
// A run writes into a generation of its own, which becomes the model at one instant: when
// MODEL.json is renamed into place, after everything that it names has been synced and its table is
// closed. Before that instant the earlier model is untouched. A process that opens the directory
// gets one model, whose files stay until it closes the model. A crash leaves either the complete
// earlier model or the complete new one. The next run deletes an incomplete generation, unless that
// has a RESUME.json from which the run resumes. Dense parameters are never combined with a table of
// another instant: the record of the table's snapshot has the run's step, and OpenTable compares
// it.
//
// # Generations
//
// The job says how many models are kept (Writer.Keep): the new one, then those from which it was
// made, one after the other, then the newest of the others. They are read by their number, as
// DIR@N. Rollback makes one of them the model again, at one instant like a commit.
//
// MODEL.json at the top identifies the model. The copy in the model's generation is updated before
// another generation becomes the model, and is authoritative from then on. So a generation that was
// the model is complete from its commit until it is deleted. To delete a generation, a run deletes
// that copy first, so a crash leaves no incomplete generation that looks complete. If a process is
// reading the generation, the rest stays, and the next run deletes it.
//
// # Models from elsewhere
//
// A generation is moved to another machine as a list of files (package modelfiles), from which it
// is rebuilt there (restore.go). So is a snapshot of a run (restorerun.go). A generation can be
// published before all files of its table have arrived (arriving.go).
//
// # What is lost
//
// If a disk fails, a table on several disks loses the files there. The loss is detected when a run
// begins, ends or fails (lost.go), and the remaining files are used to recover the table
// (remainingfiles.go).
package modeldir
