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

// Options say which run it is that starts.
type Options struct {
	Job     *configs.Job
	Sources *source.Sources
	Version string // of the binary
	Fresh   bool   // the run does not go on with an interrupted one
	Log     *slog.Logger
	// IfGone returns what to do where the model to start from is nowhere, which its error says.
	IfGone func(context.Context, error) error
	// Restored is set to what it took to restore the model to start from.
	Restored *report.Arrival
}

// Model is the model that a run starts from.
type Model struct {
	Options
	Chain    *chain.Chain        // of the job's models
	Start    *chain.Start        // the model; nil: the run makes a new one
	Previous *modeldir.Model     // the model, as it is opened; nil without
	Lost     *modeldir.LostError // what its table had lost, before it was restored; nil: nothing
	Later    string              // a warning: output.remote has the model of a later night; "": it has not, as far as is known

	gone *chain.GoneError // why Previous was restored for this run alone; nil: it was not for that
}
