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

// histogramJSON is a Histogram in a file: its bins that are not empty. Column by column
// they are half as long as bin by bin, and a sixth when they are compressed.
type histogramJSON struct {
	Bins      int       `json:"bins"`
	Skipped   []int     `json:"skipped"` // empty bins before each
	Negatives []float64 `json:"negatives"`
	Positives []float64 `json:"positives"`

	Found [][3]float64 `json:"found,omitempty"` // of earlier versions: number, negatives and positives
}

// MarshalJSON writes the bins that are not empty.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	f := histogramJSON{Bins: len(h.bins), Skipped: []int{}, Negatives: []float64{}, Positives: []float64{}}
	next := 0
	for i, b := range h.bins {
		if b != (bin{}) {
			f.Skipped, f.Negatives, f.Positives = append(f.Skipped, i-next), append(f.Negatives, b.neg), append(f.Positives, b.pos)
			next = i + 1
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
	if len(f.Negatives) != len(f.Skipped) || len(f.Positives) != len(f.Skipped) {
		return errors.New("score: the columns of a histogram have different lengths")
	}
	*h = *NewHistogram(f.Bins)
	outside := errors.New("score: a histogram has a bin outside of its range")
	next := 0
	for i, n := range f.Skipped {
		if n < 0 || n >= f.Bins-next {
			return outside
		}
		h.bins[next+n] = bin{neg: f.Negatives[i], pos: f.Positives[i]}
		next += n + 1
	}
	for _, x := range f.Found {
		i := int(x[0])
		if x[0] != float64(i) || i < 0 || i >= f.Bins {
			return outside
		}
		h.bins[i] = bin{neg: x[1], pos: x[2]}
	}
	return nil
}
