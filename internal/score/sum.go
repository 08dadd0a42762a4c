package score

import "math"

// Sum adds float64 values with Neumaier's compensation: the error stays below
// an ulp or two of the total for any number of terms, where a plain sum of 10^9
// log losses could lose seven digits. The zero value is 0.
type Sum struct{ total, lost float64 }

// Add adds x.
func (s *Sum) Add(x float64) {
	t := s.total + x
	if math.Abs(s.total) >= math.Abs(x) {
		s.lost += (s.total - t) + x
	} else {
		s.lost += (x - t) + s.total
	}
	s.total = t
}

// Value is the sum so far.
func (s *Sum) Value() float64 { return s.total + s.lost }
