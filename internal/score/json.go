package score

import (
	"encoding/json"
	"errors"
	"fmt"
)

// What a run has counted so far can be written as JSON and read back, exactly: the
// shortest decimal form of a float64 stands for this one alone.

// MarshalJSON writes the sum with what compensates its errors.
func (s Sum) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{s.total, s.lost}) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Sum) UnmarshalJSON(b []byte) error {
	var parts [2]float64
	err := json.Unmarshal(b, &parts)
	s.total, s.lost = parts[0], parts[1]
	return err
}

// lossJSON is a Loss in a file.
type lossJSON struct {
	Examples  int64 `json:"examples"`
	Weight    Sum   `json:"weight"`
	Positives Sum   `json:"positives"`
	Loss      Sum   `json:"loss"`
	Predicted Sum   `json:"predicted"`
}

// MarshalJSON writes all sums.
func (l Loss) MarshalJSON() ([]byte, error) {
	return json.Marshal(lossJSON{l.examples, l.weight, l.positives, l.loss, l.predicted})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Loss) UnmarshalJSON(b []byte) error {
	var f lossJSON
	err := json.Unmarshal(b, &f)
	*l = Loss{f.Examples, f.Weight, f.Positives, f.Loss, f.Predicted}
	return err
}

// histogramJSON is a Histogram in a file: its bins that are not empty, as number,
// negatives and positives.
type histogramJSON struct {
	Bins  int          `json:"bins"`
	Found [][3]float64 `json:"found"`
}

// MarshalJSON writes the bins that are not empty.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	f := histogramJSON{Bins: len(h.bins), Found: [][3]float64{}}
	for i, b := range h.bins {
		if b != (bin{}) {
			f.Found = append(f.Found, [3]float64{float64(i), b.neg, b.pos})
		}
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var f histogramJSON
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	const most = 1 << 24
	if f.Bins < 2 || f.Bins > most {
		return fmt.Errorf("score: a histogram of %d bins", f.Bins)
	}
	*h = *NewHistogram(f.Bins)
	for _, x := range f.Found {
		i := int(x[0])
		if x[0] != float64(i) || i < 0 || i >= f.Bins {
			return errors.New("score: a histogram has a bin outside of its range")
		}
		h.bins[i] = bin{neg: x[1], pos: x[2]}
	}
	return nil
}
