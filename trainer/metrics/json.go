package metrics

import (
	"encoding/json"
	"errors"

	"aibox/internal/score"
)

// accumulatorJSON is an Accumulator in a file.
type accumulatorJSON struct {
	Loss      score.Loss       `json:"loss"`
	Histogram *score.Histogram `json:"histogram"`
}

// MarshalJSON writes what the accumulator has counted. It fails for one with the exact or
// the group AUC, which keeps all examples.
func (a *Accumulator) MarshalJSON() ([]byte, error) {
	if a.opt.Exact || a.opt.Groups {
		return nil, errors.New("metrics: the examples of an exact or group AUC are not written")
	}
	return json.Marshal(accumulatorJSON{a.loss, a.hist})
}

// UnmarshalJSON reads what MarshalJSON wrote; the result has no shift of logits.
func (a *Accumulator) UnmarshalJSON(b []byte) error {
	f := accumulatorJSON{Histogram: new(score.Histogram)}
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	*a = Accumulator{loss: f.Loss, hist: f.Histogram}
	return nil
}
