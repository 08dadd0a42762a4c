package gpu

import "fmt"

// Region is the bytes of a memory that an operation works on: Rows rows of Width bytes,
// the first at Offset, each Pitch bytes after the one before.
type Region struct {
	Memory Memory
	Offset int
	Width  int
	Rows   int
	Pitch  int
}

// All is the region of all bytes of a memory.
func All(m Memory) Region { return Part(m, 0, m.Bytes()) }

// Part is bytes [offset, offset+n) of a memory.
func Part(m Memory, offset, n int) Region {
	return Region{Memory: m, Offset: offset, Width: n, Rows: 1, Pitch: n}
}

func (r Region) empty() bool { return r.Width == 0 || r.Rows == 0 }

// Bytes is how many bytes belong to the region.
func (r Region) Bytes() int { return r.Rows * r.Width }

// Extent is how many bytes there are from its first one to its last.
func (r Region) Extent() int {
	if r.empty() {
		return 0
	}
	return (r.Rows-1)*r.Pitch + r.Width
}

// Check returns an InvalidArgument unless the region lies in its memory and its rows do not
// overlap. What names the region in the error.
func (r Region) Check(what string) error {
	if r.Memory == nil {
		return Invalid("%s: the region has no memory", what)
	}
	n := r.Memory.Bytes()
	switch {
	case r.Offset < 0 || r.Width < 0 || r.Rows < 0:
		return Invalid("%s: %v has a negative number", what, r)
	case r.Rows > 1 && r.Pitch < r.Width:
		return Invalid("%s: the rows of %v overlap", what, r)
	case r.Offset > n || !r.empty() && (r.Width > n || r.Rows-1 > n/max(r.Pitch, 1) || r.Offset > n-r.Extent()):
		return Invalid("%s: %v is not within the %d bytes of the memory", what, r, n)
	}
	return nil
}

// Overlaps reports whether two regions that pass Check have a byte in common. Its time depends on
// the number of rows only if both regions have gaps between their rows, at different pitches.
func (r Region) Overlaps(o Region) bool {
	if r.Memory != o.Memory || r.empty() || o.empty() || r.Offset >= o.Offset+o.Extent() || o.Offset >= r.Offset+r.Extent() {
		return false
	}
	r, o = r.joined(), o.joined()
	switch {
	case r.Rows == 1:
		return evenly(r, o, o.Pitch)
	case o.Rows == 1 || r.Pitch == o.Pitch:
		return evenly(r, o, r.Pitch)
	}
	return walk(r, o)
}

// joined returns the region as a single row if there are no gaps between its rows.
func (r Region) joined() Region {
	if r.Rows == 1 || r.Pitch == r.Width {
		r.Width, r.Rows = r.Extent(), 1
		r.Pitch = r.Width
	}
	return r
}

// evenly is Overlaps for regions with the same pitch; the pitch of a single row does not matter.
// Row j of o begins distance + (j-i)*pitch bytes after row i of r. They have a byte in common if
// that is more than -o.Width and less than r.Width.
func evenly(r, o Region, pitch int) bool {
	distance := o.Offset - r.Offset
	least := -floor(distance+o.Width-1, pitch) // of j-i
	most := floor(r.Width-1-distance, pitch)
	return max(least, 1-r.Rows) <= min(most, o.Rows-1)
}

// floor is a divided by b, rounded down.
func floor(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// walk is Overlaps for arbitrary non-empty regions.
func walk(r, o Region) bool {
	for i, j := 0, 0; i < r.Rows && j < o.Rows; {
		a, b := r.Offset+i*r.Pitch, o.Offset+j*o.Pitch
		switch {
		case a+r.Width <= b:
			i++
		case b+o.Width <= a:
			j++
		default:
			return true
		}
	}
	return false
}

func (r Region) String() string {
	name := "no memory"
	if r.Memory != nil {
		name = fmt.Sprintf("%q", r.Memory.Name())
	}
	if r.Rows == 1 {
		return fmt.Sprintf("%s[%d:%d]", name, r.Offset, r.Offset+r.Width)
	}
	return fmt.Sprintf("%s[%d:%d and %d more rows, %d apart]", name, r.Offset, r.Offset+r.Width, r.Rows-1, r.Pitch)
}
