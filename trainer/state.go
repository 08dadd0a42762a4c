package trainer

import (
	"bytes"
	"encoding/json"
	"fmt"

	"aibox/trainer/engine"
	"aibox/trainer/metrics"
)

// State is what a run is in the middle of: how far it is, what it has measured so far, and
// which epoch was the best. With the tensors of the engine's state and a snapshot of the
// table it is all that the rest of training depends on. It can be written and read back
// between any two passes; the engine, the reports and the reader are other things.
type State struct {
	Epoch    int            `json:"epoch"`    // in which training is, from 1 on; 0 before
	Passes   int64          `json:"passes"`   // of this epoch that are trained
	Examples int64          `json:"examples"` // trained in this run
	Engine   engine.State   `json:"engine"`
	Online   online         `json:"online"`
	Stopping stopping       `json:"stopping"`
	Last     *kept          `json:"last,omitempty"` // the last epoch that has ended
	Best     *kept          `json:"best,omitempty"` // with early stopping: the best epoch so far
	Epochs   []EpochSummary `json:"epochs,omitempty"`
}

// kept is the state of training after an epoch. With early stopping the table
// snapshot and the dense file exist on disk.
type kept struct {
	Epoch    int             `json:"epoch"`
	Step     int64           `json:"step"`
	Examples int64           `json:"examples"`
	Eval     *metrics.Report `json:"eval,omitempty"` // nil without evaluation data
	Snapshot uint64          `json:"snapshot,omitempty"`
}

// encode writes the state.
func (s *State) encode() ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("state of training: %w", err)
	}
	return data, nil
}

// decode reads what encode wrote. The optimizer and the fields that s has must be those
// of the state that was written.
func (s *State) decode(data []byte) error {
	read := State{Engine: engine.State{Dense: s.Engine.Dense, RowSteps: s.Engine.RowSteps}}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return fmt.Errorf("state of training: %w", err)
	}
	*s = read
	return nil
}
