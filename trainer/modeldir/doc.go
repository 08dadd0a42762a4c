// Package modeldir is the model directory: everything that evaluation,
// prediction and the next night's warm start need, and nothing else.
//
//	model_dir/
//	  MODEL.json          which generation is the model; replaced by rename
//	  gen-000002/         one training run
//	    MODEL.json        the manifest of this generation; without it, it is not complete
//	    job.yaml          the effective job, all defaults filled in
//	    statistics.json   data statistics (means and deviations of the first scan)
//	    dense-0000001875  dense parameters, optimizer state (package tensorfile)
//	    table/            the embedding table, snapshots of package sparsetable,
//	    table-dirs.json   or the directories elsewhere that hold it; each says in
//	                      OWNER.json whose it is (package outside)
//	    reports/          reports of the run
//	    RESUME.json       what a process needs to go on with the run if it is
//	                      interrupted (resume.go); a committed model has none
//	    RESTORE.json      which generation of elsewhere this one is to be, until
//	                      it is complete (restore.go)
//	    DISCARDED         it was restored, and given up (discarded.go)
//	    LOCK              shared by those who read the model
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
// gets one model, whose files stay until it closes the model. A crash leaves the complete earlier
// model or the complete new one. A generation that is not complete is deleted by the next run,
// unless it has RESUME.json and that run goes on with it. Dense parameters are never combined with
// a table of another instant: the table's snapshot has the run's step in its record, and OpenTable
// compares it.
//
// # Generations
//
// As many models as the job says stay (Writer.Keep): the new one, those from which it was
// made one after the other, then the newest of the others. They are read by their number,
// as DIR@N, and Rollback makes one of them the model again, at one instant like a commit.
//
// MODEL.json at the top says what the model is. The copy in its generation is brought up
// to date before another generation becomes the model, and is what is valid from then on;
// so a generation that was the model is complete from its commit until it is deleted. To
// delete a generation, a run deletes that copy first, so that a crash leaves no generation
// that looks complete and is not. If a process reads the generation, the rest stays, and
// the next run deletes it.
//
// # Models from elsewhere
//
// A generation is taken to another machine as a list of files (package modelfiles), from which it is
// made again there (restore.go), and so is a snapshot of a run (restorerun.go). It can be published
// before all files of its table have arrived (arriving.go).
//
// # What is lost
//
// A table on several disks loses the files of one when that fails. Which they are is found out when a run
// begins, ends or fails (lost.go), and what is left is used to bring the table back (survivors.go).
package modeldir
