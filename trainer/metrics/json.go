package metrics

import (
	"encoding/json"
	"errors"

	"aibox/internal/score"
)

// accumulatorJSON is the JSON form of an Accumulator.
type accumulatorJSON struct {
	Loss      score.Loss       `json:"loss"`
	Histogram *score.Histogram `json:"histogram"`
}

// MarshalJSON writes what the accumulator has counted. It fails with the exact or the group AUC,
// for which all examples are kept.
func (a *Accumulator) MarshalJSON() ([]byte, error) {
	if a.opt.Exact || a.opt.Groups {
		return nil, errors.New("metrics: the examples of an exact or group AUC are not written")
	}
	return json.Marshal(accumulatorJSON{a.loss, a.hist})
}

// UnmarshalJSON reads what MarshalJSON wrote. The result has no LogitShift.
func (a *Accumulator) UnmarshalJSON(b []byte) error {
	f := accumulatorJSON{Histogram: new(score.Histogram)}
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	*a = Accumulator{loss: f.Loss, hist: f.Histogram}
	return nil
}
