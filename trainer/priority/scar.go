package priority

import (
	"math"

	"aibox/sparsetable"
)

// scar ranks rows by the distance of their values from the saved ones.
type scar struct {
	entries
	layout    sparsetable.Layout
	now, then []float32 // values of one row
}

// Begin implements List. A row without an entry has not changed since it was saved.
func (s *scar) Begin(keys []uint64, rows Rows) {
	for i, key := range keys {
		if s.find(key) >= 0 {
			continue
		}
		if s.full() {
			s.dropHalf()
		}
		copy(s.baseOf(s.add(key)), rows.Row(i))
	}
}

// End implements List.
func (s *scar) End(keys []uint64, rows Rows) {
	for i, key := range keys {
		at := s.find(key)
		if at < 0 {
			continue // it was dropped in Begin
		}
		s.layout.LoadValues(s.now, rows.Row(i))
		s.layout.LoadValues(s.then, s.baseOf(at))
		sum := 0.0
		for j, v := range s.now {
			d := float64(v - s.then[j])
			sum += d * d
		}
		norm := float32(math.Sqrt(sum))
		if !(norm < math.MaxFloat32) { // also if values are not finite
			norm = math.MaxFloat32
		}
		s.score[at] = norm
	}
}
