package decay

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"aibox/trainer/optim"
)

// Rates are learning rate times weight decay, or times L2 of the table, before the schedule.
type Rates struct {
	First float64       `json:"first"`        // of a row's first value, which may be a linear weight with an optimizer of its own
	Rest  float64       `json:"rest"`         // of the other values
	By    *Denominators `json:"by,omitempty"` // what the rates of each row are divided by; nil if by nothing
}

// Denominators say where the state of a row has the sums that its rates are divided by.
type Denominators struct {
	First optim.Accumulators `json:"first"`
	Rest  optim.Accumulators `json:"rest"`
}

// RatesOf returns the rates of a row optimizer.
func RatesOf(rows *optim.Rows) (r Rates) {
	if r.First, r.Rest = rows.TableL2Rates(); r.First == 0 && r.Rest == 0 {
		r.First, r.Rest = rows.DecayRates()
		return r
	}
	r.By = new(Denominators)
	r.By.First, r.By.Rest = rows.Accumulators()
	return r
}

// same reports whether both are nil or equal.
func (d *Denominators) same(other *Denominators) bool {
	return d == other || d != nil && other != nil && *d == *other
}

// same reports whether rows decay in the same way.
func (r Rates) same(other Rates) bool {
	return r.First == other.First && r.Rest == other.Rest && r.By.same(other.By)
}

// Segment says how rows decay after a step of the model, up to the next segment.
type Segment struct {
	After    int64                `json:"after"`
	Rates    Rates                `json:"rates"`
	Schedule optim.ScheduleConfig `json:"schedule"` // counted from After on
}

// History says how the rows of a model have decayed since the first step.
type History struct {
	Base     int64     `json:"base"` // the step that clocks count from
	Segments []Segment `json:"segments"`
}

// renewAfter is the number of steps after which a warm start renews the clocks of all rows.
const renewAfter = 1 << 31

// by returns the denominators of the history, nil if it has none. It has at most one pair.
func (h *History) by() *Denominators {
	for _, s := range h.Segments {
		if s.Rates.By != nil {
			return s.Rates.By
		}
	}
	return nil
}

// Continued returns the history of a run that begins after a step with the given rates. h is the
// history of the model whose rows it continues, nil if they have no clocks. renew reports whether
// the clocks of all rows have to be set to that step, up to which their values are decayed. That is
// also necessary if the rows' state may no longer have the denominators of h.
func (h *History) Continued(after int64, r Rates, s optim.ScheduleConfig) (next *History, renew bool) {
	next, renew = &History{Base: after}, true
	if h != nil && after-h.Base <= renewAfter && (h.by() == nil || h.by().same(r.By)) {
		next.Base, next.Segments, renew = h.Base, slices.Clone(h.Segments), false
	}
	if n := len(next.Segments); n > 0 && next.Segments[n-1].Rates.same(r) && s.Constant() && next.Segments[n-1].Schedule.Constant() {
		return next, renew
	}
	next.Segments = append(next.Segments, Segment{After: after, Rates: r, Schedule: s})
	return next, renew
}

// validate reports faults that no run can have written.
func (h *History) validate() error {
	for i, s := range h.Segments {
		if i > 0 && s.After < h.Segments[i-1].After || s.After < 0 {
			return fmt.Errorf("decay: the segments of the history are out of order")
		}
		if by := s.Rates.By; by != nil {
			if !by.same(h.by()) {
				return fmt.Errorf("decay: the history has different denominators")
			}
			for _, a := range []optim.Accumulators{by.First, by.Rest} {
				if !(0 <= a.From && a.From <= a.To && a.Epsilon >= 0) {
					return fmt.Errorf("decay: denominators %+v in the history", a)
				}
			}
		}
		for _, rate := range []float64{s.Rates.First, s.Rates.Rest} {
			if !(rate >= 0 && rate < 1) {
				return fmt.Errorf("decay: a rate of %v in the history: want 0 or more, below 1", rate)
			}
		}
	}
	return nil
}

// Timeline computes from a History how far rows have decayed. At may extend it, so no other
// method of it or of its moments may be called at the same time as At.
type Timeline struct {
	history  History
	by       *Denominators // of the segments that have them
	segments []segment
	covered  int64 // the step up to which the curves are extended
}

// segment is a Segment with its sums.
type segment struct {
	after       int64
	before      sums
	first, rest *curve // the same one if the rates are equal
	divided     bool   // whether logarithms are divided by each row's denominators
}

// sums are logarithms of factors, in which alike is the same for all rows, and divided is still to
// be divided by each row's denominators.
type sums struct{ alike, divided pair }

type pair struct{ first, rest float64 }

func (a pair) minus(b pair) pair { return pair{a.first - b.first, a.rest - b.rest} }

func (a sums) minus(b sums) sums {
	return sums{a.alike.minus(b.alike), a.divided.minus(b.divided)}
}

// NewTimeline returns the timeline of a history.
func NewTimeline(h *History) (*Timeline, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	t := &Timeline{history: *h, by: h.by()}
	for i, s := range h.Segments {
		schedule, err := optim.NewSchedule(s.Schedule)
		if err != nil {
			return nil, err
		}
		x := segment{after: s.After, first: &curve{rate: s.Rates.First, schedule: schedule}, divided: s.Rates.By != nil}
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

// extend makes the segment's curves cover the steps up to a step of the model, and returns the sum
// over all steps up to it.
func (s *segment) extend(step int64) sums {
	s.first.extend(step - s.after)
	s.rest.extend(step - s.after)
	return s.at(step)
}

// at returns the sum over all steps up to a step of the segment.
func (s *segment) at(step int64) sums {
	at := s.before
	own := &at.alike
	if s.divided {
		own = &at.divided
	}
	own.first += s.first.sum(step - s.after)
	own.rest += s.rest.sum(step - s.after)
	return at
}

// WithoutState returns the timeline for rows that lose their state: nil if it needs denominators.
func (t *Timeline) WithoutState() *Timeline {
	if t != nil && t.by != nil {
		return nil
	}
	return t
}

// History returns the history of the timeline; nil for a nil timeline.
func (t *Timeline) History() *History {
	if t == nil {
		return nil
	}
	return &t.history
}

// at returns the sum over all steps up to a covered step.
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
