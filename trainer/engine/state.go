package engine

import (
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// Config has the constants of an engine.
type Config struct {
	Network   *program.Network
	Precision Precision
	Layout    sparsetable.Layout
	Rows      *optim.Rows // nil if the engine only infers
	Schedule  optim.Schedule
	Seed      uint64 // for the stochastic rounding of 16-bit values

	Day            uint32
	ShowDecay      float32 // per day
	MinOccurrences uint32  // a key's embedding is used from this occurrence on
}

// State is the image, in the host's memory, of all that an engine changes besides rows: the
// parameters and running statistics of the network, and the fields below. Its JSON has all of that
// but the tensors, which are those of the network and of Dense.State.
type State struct {
	Dense    *optim.Dense `json:"dense_steps,omitempty"` // state of the optimizer of the parameters; nil if the engine only infers
	RowSteps *RowSteps    `json:"row_steps,omitempty"`   // nil if the engine only infers

	Decay *decay.Timeline `json:"row_decay,omitempty"` // nil if rows do not decay; then they have no clocks

	Step      int64 `json:"step"`       // optimizer steps taken, including those of earlier models
	FirstStep int64 `json:"first_step"` // the step before this run's first one; the schedule counts from it
}
