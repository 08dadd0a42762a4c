package engine

import (
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// Config is what an engine computes with and does not change.
type Config struct {
	Network   *program.Network
	Precision Precision
	Layout    sparsetable.Layout
	Rows      *optim.Rows // nil if the engine only infers
	Schedule  optim.Schedule
	Seed      uint64 // for the stochastic rounding of 16-bit values

	Day            uint32
	ShowDecay      float32 // per day
	MinOccurrences uint32  // an embedding is used from this occurrence of its key on
}

// State is the image, in the host's memory, of all that an engine changes besides rows:
// the parameters and running statistics of the network, and what follows. As JSON it is
// all of that but the tensors, which are those of the network and of Dense.State.
type State struct {
	Dense    *optim.Dense `json:"dense_steps,omitempty"` // state of the optimizer of the parameters; nil if the engine only infers
	RowSteps *RowSteps    `json:"row_steps,omitempty"`   // nil if the engine only infers

	Decay *decay.Timeline `json:"row_decay,omitempty"` // nil if rows do not decay; then they have no clocks

	Step      int64 `json:"step"`       // optimizer steps taken, including those of earlier models
	FirstStep int64 `json:"first_step"` // the step after which this run began; the schedule counts from it
}
