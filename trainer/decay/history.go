package decay

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"aibox/trainer/optim"
)

// Rates are learning rate times weight decay, before the schedule.
type Rates struct {
	First float64 `json:"first"` // of the first value of a row, which may be a linear weight with an optimizer of its own
	Rest  float64 `json:"rest"`  // of the other values
}

// Segment says how rows decay after a step of the model, until the next segment begins.
type Segment struct {
	After    int64                `json:"after"`
	Rates    Rates                `json:"rates"`
	Schedule optim.ScheduleConfig `json:"schedule"` // counted from After on
}

// History is how the rows of a model have decayed from the first step on.
type History struct {
	Base     int64     `json:"base"` // step from which clocks count
	Segments []Segment `json:"segments"`
}

// renewAfter is the number of steps after which a warm start renews the clocks of all rows.
const renewAfter = 1 << 31

// Continued returns the history of a run that begins after a step with the given rates, with
// rows of a model with history h; nil: with rows that have no clocks. renew reports whether
// the clocks of all rows have to be set to that step, to which their values are decayed.
func (h *History) Continued(after int64, r Rates, s optim.ScheduleConfig) (next *History, renew bool) {
	next, renew = &History{Base: after}, true
	if h != nil && after-h.Base <= renewAfter {
		next.Base, next.Segments, renew = h.Base, slices.Clone(h.Segments), false
	}
	if n := len(next.Segments); n > 0 && next.Segments[n-1].Rates == r && s.Constant() && next.Segments[n-1].Schedule.Constant() {
		return next, renew
	}
	next.Segments = append(next.Segments, Segment{After: after, Rates: r, Schedule: s})
	return next, renew
}

// validate reports what no run can have written.
func (h *History) validate() error {
	for i, s := range h.Segments {
		if i > 0 && s.After < h.Segments[i-1].After || s.After < 0 {
			return fmt.Errorf("decay: the segments of the history are out of order")
		}
		for _, rate := range []float64{s.Rates.First, s.Rates.Rest} {
			if !(rate >= 0 && rate < 1) {
				return fmt.Errorf("decay: a rate of %v in the history: want 0 or more, below 1", rate)
			}
		}
	}
	return nil
}

// Timeline computes from a History how far rows have decayed. At and Extend belong to one
// goroutine.
type Timeline struct {
	history  History
	segments []segment
	covered  int64 // the step up to which At can be called without Extend
}

// segment is a Segment with its sums.
type segment struct {
	after       int64
	before      sums
	first, rest *curve // the same one if the rates are equal
}

// sums are logarithms of factors: of the first value of a row, and of the others.
type sums struct{ first, rest float64 }

func (a sums) minus(b sums) sums { return sums{a.first - b.first, a.rest - b.rest} }

// NewTimeline returns the timeline of a history.
func NewTimeline(h *History) (*Timeline, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	t := &Timeline{history: *h}
	for i, s := range h.Segments {
		schedule, err := optim.NewSchedule(s.Schedule)
		if err != nil {
			return nil, err
		}
		x := segment{after: s.After, first: &curve{rate: s.Rates.First, schedule: schedule}}
		if x.rest = x.first; s.Rates.Rest != s.Rates.First {
			x.rest = &curve{rate: s.Rates.Rest, schedule: schedule}
		}
		if i > 0 {
			x.before = t.segments[i-1].extend(s.After)
		}
		t.segments = append(t.segments, x)
	}
	return t, nil
}

// extend makes the segment's curves cover the steps up to one of the model, and returns the sum
// of all steps up to it.
func (s *segment) extend(step int64) sums {
	s.first.extend(step - s.after)
	s.rest.extend(step - s.after)
	return s.at(step)
}

// at is the sum of all steps up to one of the segment.
func (s *segment) at(step int64) sums {
	at := s.before
	at.first += s.first.sum(step - s.after)
	at.rest += s.rest.sum(step - s.after)
	return at
}

// History is the history of the timeline; nil if that is nil.
func (t *Timeline) History() *History {
	if t == nil {
		return nil
	}
	return &t.history
}

// at is the sum of all steps up to one that is covered.
func (t *Timeline) at(step int64) sums {
	i := sort.Search(len(t.segments), func(i int) bool { return t.segments[i].after >= step }) - 1
	if i < 0 {
		return sums{}
	}
	return t.segments[i].at(step)
}

// MarshalJSON writes the history.
func (t *Timeline) MarshalJSON() ([]byte, error) { return json.Marshal(&t.history) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Timeline) UnmarshalJSON(b []byte) error {
	var h History
	if err := json.Unmarshal(b, &h); err != nil {
		return err
	}
	read, err := NewTimeline(&h)
	if err == nil {
		*t = *read
	}
	return err
}
