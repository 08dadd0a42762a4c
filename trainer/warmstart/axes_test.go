package warmstart

import (
	"slices"
	"strings"
	"testing"

	"aibox/internal/errkind"
)

// TestCopyByName: entries of an axis that have names are taken wherever they were, new ones stay
// as they are, and those that are gone are dropped. Entries without names keep their places.
func TestCopyByName(t *testing.T) {
	for name, c := range map[string]struct {
		oldShape, shape []int
		oldNames, names [][]string
		want            []float32 // of the new values, which are 0 where none is taken; the old ones are 1, 2, 3, ...
		fresh           int
	}{
		"same":           {[]int{3}, []int{3}, nil, nil, []float32{1, 2, 3}, 0},
		"moved":          {[]int{3}, []int{3}, [][]string{{"a", "b", "c"}}, [][]string{{"c", "a", "b"}}, []float32{3, 1, 2}, 0},
		"added, dropped": {[]int{2}, []int{3}, [][]string{{"a", "b"}}, [][]string{{"x", "b", "y"}}, []float32{0, 2, 0}, 2},
		"matrix":         {[]int{2, 2}, []int{3, 2}, [][]string{{"a", "b"}}, [][]string{{"b", "x", "a"}}, []float32{3, 4, 0, 0, 1, 2}, 2},
		"both axes":      {[]int{2, 2}, []int{1, 3}, [][]string{{"a", "b"}, {"p", "q"}}, [][]string{{"b"}, {"q", "x", "p"}}, []float32{4, 0, 3}, 1},
	} {
		m, err := MatchAxes("w", c.oldShape, c.oldNames, c.shape, c.names)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		old, into := make([]float32, m.OldSize()), make([]float32, len(c.want))
		for i := range old {
			old[i] = float32(i + 1)
		}
		Copy(m, into, old)
		if !slices.Equal(into, c.want) || m.Fresh != c.fresh {
			t.Errorf("%s: %v with %d new ones, want %v with %d", name, into, m.Fresh, c.want, c.fresh)
		}
	}
	for _, c := range []struct {
		oldShape, shape []int
		says            string
	}{
		{[]int{2}, []int{2, 1}, "had 1 axes and now has 2"},
		{[]int{2, 3}, []int{2, 4}, "layer sizes must stay"},
	} {
		if _, err := MatchAxes("tower/w", c.oldShape, nil, c.shape, nil); errkind.Of(t.Context(), err) != errkind.Usage || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "tower/w") {
			t.Errorf("%v to %v: %v", c.oldShape, c.shape, err)
		}
	}
}
