package start

import (
	"context"
	"log/slog"

	"aibox/configs"
	"aibox/reader/source"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// Options describe the run that starts.
type Options struct {
	Job     *configs.Job
	Sources *source.Sources
	Version string // of the binary
	Fresh   bool   // do not resume an interrupted run
	Log     *slog.Logger
	// IfGone decides what to do if the model to start from is nowhere. It gets the error that says
	// so.
	IfGone func(context.Context, error) error
	// Restored is set to the cost of restoring the model to start from.
	Restored *report.Arrival
}

// Model is the model that a run starts from.
type Model struct {
	Options
	Chain    *chain.Chain        // of the job's models
	Start    *chain.Start        // the model; nil if the run makes a new one
	Previous *modeldir.Model     // the open model, or nil
	Lost     *modeldir.LostError // what its table had lost before it was restored; nil if nothing
	Later    string              // a warning that output.remote has the model of a later night; "" if none is known

	gone *chain.GoneError // why Previous was restored for this run alone; nil if it was not
}
