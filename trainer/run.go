package trainer

import (
	"context"
	"log/slog"

	"aibox/configs"
	"aibox/trainer/arriving"
	"aibox/trainer/dataset"
	"aibox/trainer/engine"
	"aibox/trainer/jobparts"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
	"aibox/trainer/start"
)

// run is one run of a training job.
type run struct {
	task
	data     dataset.Data
	models   models
	arriving arriving.Files // of its table
	training
	saving
	results
	history
	losses
}

// task is what a run is to do.
type task struct {
	job   *configs.Job // without the entries of sparse_table.dirs that are left out
	asked *configs.Job // as the caller gave it
	opts  Options
	log   *slog.Logger
	jobparts.Parts
}

// models are the models that a run uses, and their directories.
type models struct {
	start.Model // from which the run starts
	writer      *modeldir.Writer
	startsOver  func() // logs, once, why an interrupted run is not continued; may be nil
}

// training is what is trained, and its progress.
type training struct {
	model   *model.Model
	table   runTable
	engine  engine.Engine
	state   runstate.State
	clock   runstate.Clock // of the current epoch
	scoring scoring
	midway  bool            // another process cannot resume from the present state
	final   *runstate.Final // the trained model, once its files are complete
}

// saving is what a run needs to be saved, so that another process can resume it.
type saving struct {
	snapshots *snapshots
	identity  []byte // of the run, as it is in snapshots
	// grace is the context of work that may be completed after the run was told to stop.
	grace context.Context
}

// results are the reports of a run.
type results struct {
	reports *report.Writer
	summary report.Summary
}
