package gpu

// Ranger is a Platform that tells a profiler, such as Nsight Systems, what the program does when.
// Without a profiler this costs next to nothing.
type Ranger interface {
	// StartRange begins a range of time, which EndRange ends. Unlike other methods they may be
	// called by any goroutine at any time. Ranges may overlap, and may end on another goroutine.
	StartRange(name string) Range
	EndRange(Range)
}

// Range is a range of time that was begun.
type Range uint64

// RangerOf returns p if it is a Ranger, and otherwise one that does nothing. p may be nil.
func RangerOf(p Platform) Ranger {
	if r, ok := p.(Ranger); ok {
		return r
	}
	return noRanger{}
}

type noRanger struct{}

func (noRanger) StartRange(string) Range { return 0 }
func (noRanger) EndRange(Range)          {}
