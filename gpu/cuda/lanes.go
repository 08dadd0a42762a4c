package cuda

import "slices"

// An operation that ends, and one that begins behind it, take some microseconds in which the device
// does nothing for the two. So the operations of a graph are spread over lanes, which run side by
// side as far as gpu.Order lets them.

// lanes is how many there are. In the backward pass of a network, whose graphs this is for, two
// products can run at a time: the gradient of the weights of a layer, and the gradient that goes on
// to the layer before. Each lane needs a workspace of cuBLAS, and more of them would divide the
// multiprocessors, which a product of training fills, without any more starts to hide.
const lanes = 2

const (
	// startCost is what an operation costs beside the bytes of its regions: as many as memory moves
	// meanwhile, 4 microseconds at 2 TB/s.
	startCost = 8 << 20
	// crossCost is how much later an operation begins that waits for one of another lane.
	crossCost = startCost / 2
)

// worthLanes is how much shorter lanes must make a graph, by these costs, for it not to be a chain:
// one part in so many. Drivers launch chains faster than other graphs.
const worthLanes = 10

// schedule is how operations are spread over lanes.
type schedule struct {
	order []int   // of all operations: one comes behind all that it waits for, and lanes run theirs in this order
	lane  []int   // of each operation
	waits [][]int // of each operation: those of other lanes behind which it comes and that nothing else makes it come behind
	cost  int     // of all, from the first one to the end of the last
}

// choose spreads operations over lanes, if that is worth it.
func choose(after [][]int, cost []int) schedule {
	one, several := chain(cost), spread(after, cost, lanes)
	if several.cost > one.cost-one.cost/worthLanes {
		return one
	}
	return several
}

// chain is all operations in one lane, in their order.
func chain(cost []int) schedule {
	s := schedule{order: make([]int, len(cost)), lane: make([]int, len(cost)), waits: make([][]int, len(cost))}
	for i, c := range cost {
		s.order[i] = i
		s.cost += c
	}
	return s
}

// spread makes a schedule of operations, of which each waits for those in after and costs so much.
// Whenever a lane is free it takes, of the operations that may begin, the one with the most
// expensive path from it to an end. Among lanes it is the first that can begin first: so what all
// else waits for stays in one lane, and others take what can run beside it.
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

// earliest returns the lane in which an operation that waits for others can begin first, and when.
// It is not ok if one of the others is in no lane yet: then it has no end.
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

// findWaits finds out where lanes must wait for one another.
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

// marks numbers the operations that others wait for, from 1 on, in the order in which they are
// enqueued. That of others is 0.
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
