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

// task is what a run is to do, and how.
type task struct {
	job   *configs.Job // without entries of sparse_table.dirs that are left out
	asked *configs.Job // as it was given
	opts  Options
	log   *slog.Logger
	jobparts.Parts
}

// models are the models that a run has to do with, and their directories.
type models struct {
	start.Model // from which the run starts
	writer      *modeldir.Writer
	startsOver  func() // logs, once, why an interrupted run is not continued; nil: nothing to say
}

// training is what is trained, and how far that is.
type training struct {
	model   *model.Model
	table   runTable
	engine  engine.Engine
	state   runstate.State
	clock   runstate.Clock // of the present epoch
	scoring scoring
	midway  bool            // the state is not one that another process can go on from
	final   *runstate.Final // the trained model, once its files are complete
}

// saving is how a run is saved, so that another process can go on with it.
type saving struct {
	snapshots *snapshots
	identity  []byte // of the run, as in snapshots
	// grace is the context of what may be completed after the run was told to stop.
	grace context.Context
}

// results are what a run says of itself.
type results struct {
	reports *report.Writer
	summary report.Summary
}
