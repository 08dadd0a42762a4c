package emulated

import (
	"sync"

	"aibox/gpu"
)

// RangeMark is the beginning or the end of a range.
type RangeMark struct {
	Name  string
	Range gpu.Range
	End   bool
}

// ranges are all those of a platform.
type ranges struct {
	sync.Mutex
	marks []RangeMark
	names []string // of a Range, which counts from 1
}

// StartRange implements gpu.Ranger.
func (p *Platform) StartRange(name string) gpu.Range {
	r := &p.ranges
	r.Lock()
	defer r.Unlock()
	r.names = append(r.names, name)
	id := gpu.Range(len(r.names))
	r.marks = append(r.marks, RangeMark{Name: name, Range: id})
	return id
}

// EndRange implements gpu.Ranger.
func (p *Platform) EndRange(id gpu.Range) {
	r := &p.ranges
	r.Lock()
	defer r.Unlock()
	r.marks = append(r.marks, RangeMark{Name: r.names[id-1], Range: id, End: true})
}

// Ranges returns the beginnings and ends of all ranges so far, in their order.
func (p *Platform) Ranges() []RangeMark {
	r := &p.ranges
	r.Lock()
	defer r.Unlock()
	return append([]RangeMark(nil), r.marks...)
}
