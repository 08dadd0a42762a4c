package warmstart

import (
	"fmt"

	"aibox/internal/errkind"
)

// Match has, for the entries of each axis of a parameter, their indexes in the earlier one; -1
// means that an entry is new.
type Match struct {
	from     [][]int
	oldShape []int
	Fresh    int // number of new values
}

// MatchAxes matches axes by the names of their entries. It fails if an axis without names has
// another length, since values cannot be copied between layers of different sizes.
func MatchAxes(name string, oldShape []int, oldNames [][]string, shape []int, names [][]string) (*Match, error) {
	if len(oldShape) != len(shape) {
		return nil, errkind.Errorf(errkind.Usage, "parameter %s had %d axes and now has %d", name, len(oldShape), len(shape))
	}
	m := &Match{oldShape: oldShape}
	kept := 1
	for a := range shape {
		var from []int
		if a < len(names) && names[a] != nil && a < len(oldNames) && oldNames[a] != nil {
			at := make(map[string]int, oldShape[a])
			for i, n := range oldNames[a] {
				at[n] = i
			}
			for _, n := range names[a] {
				i, ok := at[n]
				if !ok {
					i = -1
				}
				from = append(from, i)
			}
		} else {
			if oldShape[a] != shape[a] {
				return nil, errkind.Errorf(errkind.Usage, "parameter %s had shape %v and now has %v; layer sizes must stay as they were: set them back, or train without warm_start", name, oldShape, shape)
			}
			for i := range shape[a] {
				from = append(from, i)
			}
		}
		known := 0
		for _, i := range from {
			if i >= 0 {
				known++
			}
		}
		kept *= known
		m.from = append(m.from, from)
	}
	total := 1
	for _, n := range shape {
		total *= n
	}
	m.Fresh = total - kept
	return m, nil
}

// OldSize returns the number of values of the earlier parameter.
func (m *Match) OldSize() int {
	n := 1
	for _, d := range m.oldShape {
		n *= d
	}
	return n
}

// Copy copies the values of old that into has, too.
func Copy[T any](m *Match, into, old []T) {
	switch len(m.from) {
	case 1:
		for i, from := range m.from[0] {
			if from >= 0 {
				into[i] = old[from]
			}
		}
	case 2:
		width, oldWidth := len(m.from[1]), m.oldShape[1]
		for i, fi := range m.from[0] {
			if fi < 0 {
				continue
			}
			for j, fj := range m.from[1] {
				if fj >= 0 {
					into[i*width+j] = old[fi*oldWidth+fj]
				}
			}
		}
	default:
		panic(fmt.Sprintf("warmstart: parameter with %d axes", len(m.from)))
	}
}
