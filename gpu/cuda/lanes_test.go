package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
)

// behind says for each operation which others are known to be done when it begins: those in front
// of it in its lane, those that it waits for, and what they come behind. One of its waits may be
// left out.
func (s *schedule) behind(without [2]int) []map[int]bool {
	behind, last := make([]map[int]bool, len(s.lane)), map[int]int{}
	for _, i := range s.order {
		behind[i] = map[int]bool{}
		first := slices.Clone(s.waits[i])
		if without[0] == i {
			first = slices.Delete(first, without[1], without[1]+1)
		}
		if j, ok := last[s.lane[i]]; ok {
			first = append(first, j)
		}
		for _, j := range first {
			behind[i][j] = true
			for k := range behind[j] {
				behind[i][k] = true
			}
		}
		last[s.lane[i]] = i
	}
	return behind
}

// TestSpread: lanes and waits order what must be, and no wait can be left out.
func TestSpread(t *testing.T) {
	rng := testseed.Rand(t)
	crossed := 0
	for range 300 {
		after, cost := randomGraph(rng)
		s := spread(after, cost, 1+rng.IntN(3))
		if sorted := slices.Sorted(slices.Values(s.order)); len(sorted) != len(after) || len(slices.Compact(sorted)) != len(after) {
			t.Fatalf("order %v of %d operations", s.order, len(after))
		}
		covers := func(behind []map[int]bool) bool {
			for i := range after {
				for _, j := range after[i] {
					if !behind[i][j] {
						return false
					}
				}
			}
			return true
		}
		if !covers(s.behind([2]int{-1})) {
			t.Fatalf("%+v does not order %v", s, after)
		}
		for i, waits := range s.waits {
			for k := range waits {
				if crossed++; covers(s.behind([2]int{i, k})) {
					t.Fatalf("operation %d need not wait for %d: %+v of %v", i, waits[k], s, after)
				}
			}
		}
	}
	if crossed < 300 {
		t.Errorf("%d waits", crossed)
	}
}

// randomGraph is operations of which each waits for some before it.
func randomGraph(rng *rand.Rand) (after [][]int, cost []int) {
	after = make([][]int, rng.IntN(30))
	for i := range after {
		cost = append(cost, startCost+rng.IntN(8*startCost))
		for j := i - 1; j >= 0; j-- {
			if rng.IntN(10) == 0 {
				after[i] = append(after[i], j)
			}
		}
	}
	return after, cost
}

// TestBackwardPass: the gradients that each layer hands to the one before stay in the first lane,
// and those of weights are in the other one. A chain stays a chain.
func TestBackwardPass(t *testing.T) {
	// The loss, then the gradients of weights (1, 3, 5, 7) and of inputs (2, 4, 6) of four layers,
	// and an update that needs all.
	after := [][]int{{}, {0}, {0}, {2}, {2}, {4}, {4}, {6}, {7, 5, 3, 1}}
	cost := slices.Repeat([]int{4 * startCost}, len(after))
	s := spread(after, cost, lanes)
	if want := []int{0, 1, 0, 1, 0, 1, 0, 0, 0}; !slices.Equal(s.lane, want) {
		t.Errorf("lanes %v, want %v", s.lane, want)
	}
	for i, want := range [][]int{nil, {0}, nil, {2}, nil, {4}, nil, nil, {5}} {
		if !slices.Equal(s.waits[i], want) {
			t.Errorf("operation %d waits for %v, want %v", i, s.waits[i], want)
		}
	}
	if marks := s.marks(); !slices.Equal(marks, []int{1, 0, 2, 0, 3, 4, 0, 0, 0}) {
		t.Errorf("marks %v of the order %v", marks, s.order)
	}
	chain := [][]int{{}, {0}, {1}, {2}}
	if s := spread(chain, cost[:4], lanes); !slices.Equal(s.order, []int{0, 1, 2, 3}) || slices.Max(s.lane) != 0 {
		t.Errorf("a chain becomes %+v", s)
	}
}

// TestChoose: lanes are used where they make a graph much shorter, and only there.
func TestChoose(t *testing.T) {
	cost := slices.Repeat([]int{startCost}, 20)
	after := make([][]int, len(cost))
	for i := 1; i < len(after); i++ {
		after[i] = []int{i - 1}
	}
	for _, c := range []struct {
		beside int
		want   bool
	}{{0, false}, {1, false}, {8, true}} {
		beside, want := c.beside, c.want
		for i := range beside { // they wait for the first one alone
			after[len(after)-1-i] = []int{0}
		}
		s := choose(after, cost)
		if lanes := slices.Max(s.lane) > 0; lanes != want {
			t.Errorf("with %d operations beside the others: %+v", beside, s)
		}
		if one := chain(cost); s.cost > one.cost || !want && !slices.Equal(s.order, one.order) {
			t.Errorf("with %d operations beside the others: %+v", beside, s)
		}
	}
}
