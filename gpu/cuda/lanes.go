package cuda

import "slices"

// Between the end of an operation and the start of the next one, the device idles for some
// microseconds. The operations of a graph are therefore spread over lanes, which run concurrently
// as far as gpu.Order allows.

// lanes is the number of lanes. In the backward pass of a network, which this is designed for, two
// products can run at a time: the gradient of a layer's weights, and the gradient that is passed to
// the previous layer. Each lane needs a cuBLAS workspace. More lanes would only divide the
// multiprocessors, which a training product fills, without hiding further start-up times.
const lanes = 2

const (
	// startCost is the cost of starting an operation, in addition to the bytes of its regions, in
	// bytes that memory could move meanwhile: 4 microseconds at 2 TB/s.
	startCost = 8 << 20
	// crossCost is the additional delay of an operation that waits for one in another lane.
	crossCost = startCost / 2
)

// worthLanes: lanes are used only if they shorten a graph by at least one part in worthLanes,
// according to these costs. Drivers launch chains faster than other graphs.
const worthLanes = 10

// schedule is an assignment of operations to lanes.
type schedule struct {
	order []int   // of all operations: one comes behind all that it waits for, and lanes run theirs in this order
	lane  []int   // of each operation
	waits [][]int // of each operation: those of other lanes behind which it comes and that nothing else makes it come behind
	cost  int     // of all, from the first one to the end of the last
}

// choose spreads operations over lanes if that is worthwhile.
func choose(after [][]int, cost []int) schedule {
	one, several := chain(cost), spread(after, cost, lanes)
	if several.cost > one.cost-one.cost/worthLanes {
		return one
	}
	return several
}

// chain returns the schedule with all operations in one lane, in order.
func chain(cost []int) schedule {
	s := schedule{order: make([]int, len(cost)), lane: make([]int, len(cost)), waits: make([][]int, len(cost))}
	for i, c := range cost {
		s.order[i] = i
		s.cost += c
	}
	return s
}

// spread schedules operations, of which each waits for those in after and has the given cost, by
// list scheduling. A free lane takes, of the operations that are ready, the one with the most
// expensive path to the end. Among lanes, the first one that can start it earliest is chosen. The
// critical path thus stays in one lane, and the others take the operations that can run
// concurrently with it.
func spread(after [][]int, cost []int, lanes int) schedule {
	n := len(after)
	path := slices.Clone(cost) // from each operation on, with itself
	for i := n - 1; i >= 0; i-- {
		for _, j := range after[i] {
			path[j] = max(path[j], cost[j]+path[i])
		}
	}
	s := schedule{lane: make([]int, n), waits: make([][]int, n)}
	free, end := make([]int, lanes), make([]int, n)
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		best, where, begin := -1, 0, 0
		for at, i := range left {
			lane, start, ok := s.earliest(after[i], free, end)
			if ok && (best < 0 || start < begin || start == begin && path[i] > path[left[best]]) {
				best, where, begin = at, lane, start
			}
		}
		i := left[best]
		left = slices.Delete(left, best, best+1)
		s.order, s.lane[i] = append(s.order, i), where
		end[i] = begin + cost[i]
		free[where] = end[i]
	}
	s.cost = slices.Max(free)
	s.findWaits(after, lanes)
	return s
}

// earliest returns the lane in which an operation can start earliest, and when. ok is false if one
// of the operations that it waits for has not been scheduled yet.
func (s *schedule) earliest(after, free, end []int) (lane, start int, ok bool) {
	for l := range free {
		begin := free[l]
		for _, j := range after {
			ready := end[j]
			if ready == 0 {
				return 0, 0, false
			}
			if s.lane[j] != l {
				ready += crossCost
			}
			begin = max(begin, ready)
		}
		if l == 0 || begin < start {
			lane, start = l, begin
		}
	}
	return lane, start, true
}

// findWaits determines where lanes must wait for one another.
func (s *schedule) findWaits(after [][]int, lanes int) {
	place := make([]int, len(after))   // of each operation among those of its lane, from 1 on
	known := make([][]int, len(after)) // for each operation: how many of each lane it comes behind, or is
	last := make([][]int, lanes)       // known of the last one of each lane
	for l := range last {
		last[l] = make([]int, lanes)
	}
	for _, i := range s.order {
		l := s.lane[i]
		knows := slices.Clone(last[l])
		others := slices.Clone(after[i])
		slices.SortFunc(others, func(a, b int) int { return place[b] - place[a] }) // the last ones tell the most
		for _, j := range others {
			if knows[s.lane[j]] >= place[j] {
				continue
			}
			s.waits[i] = append(s.waits[i], j)
			for k, n := range known[j] {
				knows[k] = max(knows[k], n)
			}
		}
		knows[l]++
		place[i], known[i], last[l] = knows[l], knows, knows
	}
}

// marks numbers the operations that other lanes wait for, from 1 on, in the order in which they are
// enqueued. All others get 0.
func (s *schedule) marks() []int {
	marks, n := make([]int, len(s.lane)), 0
	for _, waits := range s.waits {
		for _, i := range waits {
			marks[i] = 1
		}
	}
	for _, i := range s.order {
		if marks[i] > 0 {
			n++
			marks[i] = n
		}
	}
	return marks
}
