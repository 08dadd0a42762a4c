package emulated

import (
	"slices"

	"aibox/gpu"
)

// mode is how bytes are used.
type mode uint8

const (
	read   mode = 1 << iota
	write       // without reading what was there
	update = read | write
)

// span is bytes [lo, hi) of a memory, which have been used in the same way.
type span struct {
	lo, hi int
	write  *access   // the last one; nil if there was none
	reads  []*access // since then, without those that a later one knows of
}

// shadow records how all bytes of a memory were used. It is updated in the order in which
// operations are enqueued, which is also an order in which they could run.
type shadow struct{ spans, unused []span }

// visit calls f for spans that make up the bytes of r. What f changes is remembered.
func (s *shadow) visit(r gpu.Region, f func(*span)) {
	out, row, rows := s.unused[:0], 0, count(r)
	for _, sp := range s.spans {
		for sp.lo < sp.hi {
			for row < rows && r.Offset+row*r.Pitch+r.Width <= sp.lo {
				row++
			}
			part, inside := sp, false
			if row < rows {
				start := r.Offset + row*r.Pitch
				if inside = start <= sp.lo; inside {
					part.hi = min(sp.hi, start+r.Width)
				} else {
					part.hi = min(sp.hi, start)
				}
			}
			sp.lo = part.hi
			if inside {
				f(&part)
			}
			if n := len(out); n > 0 && out[n-1].write == part.write && slices.Equal(out[n-1].reads, part.reads) {
				out[n-1].hi = part.hi
			} else {
				out = append(out, part)
			}
		}
	}
	s.spans, s.unused = out, s.spans
}

// use records that a, with clock c, uses r. It returns the first byte of r whose use is a hazard,
// and the conflicting access that is not ordered before it, or nil if nothing has written the byte.
// The byte is -1 if there is no hazard.
func (s *shadow) use(r gpu.Region, m mode, a *access, c clock) (at int, other *access) {
	at = -1
	found := func(sp *span, o *access) {
		if at < 0 {
			at, other = sp.lo, o
		}
	}
	s.visit(r, func(sp *span) {
		if m&read != 0 && sp.write == nil {
			found(sp, nil)
		}
		if sp.write != nil && !c.knows(sp.write) {
			found(sp, sp.write)
		}
		if m&write == 0 {
			later := make([]*access, 0, len(sp.reads)+1)
			for _, o := range sp.reads {
				if !c.knows(o) {
					later = append(later, o)
				}
			}
			sp.reads = append(later, a)
			return
		}
		for _, o := range sp.reads {
			if !c.knows(o) {
				found(sp, o)
			}
		}
		sp.write, sp.reads = a, nil
	})
	return at, other
}

// quiet reports whether all accesses to r in the modes m happened before clock c.
func (s *shadow) quiet(r gpu.Region, m mode, c clock) bool {
	quiet := true
	s.visit(r, func(sp *span) {
		if m&write != 0 && sp.write != nil && !c.knows(sp.write) {
			quiet = false
		}
		for _, o := range sp.reads {
			if m&read != 0 && !c.knows(o) {
				quiet = false
			}
		}
	})
	return quiet
}
