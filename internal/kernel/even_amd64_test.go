package kernel

import (
	"container/heap"
	"testing"
)

// TestProductsKeepThreadsBusy counts: threads take rectangles in turn as parallel hands
// them out, and one takes as long as its multiply-adds in whole vectors. All threads
// together should hardly wait for the last one.
func TestProductsKeepThreadsBusy(t *testing.T) {
	for _, shape := range []struct{ inputs, outputs int }{
		{13, 512}, {512, 256}, {256, 64}, {64, 16}, {367, 512}, {415, 512}, {351, 512},
		{256, 128}, {429, 512}, {429, 128}, {845, 1024}, {1024, 512}, {429, 429}, {27, 64}, {1024, 1024},
	} {
		for _, batch := range []int{512, 2048, 16384} {
			for _, form := range []struct{ m, n, k int }{
				{batch, shape.outputs, shape.inputs},
				{batch, shape.inputs, shape.outputs},
				{shape.inputs, shape.outputs, batch},
			} {
				for _, threads := range []int{2, 3, 4, 8, 16} {
					work := form.m * form.n * form.k
					if work < 2*threads*threadWork {
						continue // would use fewer threads
					}
					// Small results are not cut into as many rectangles as would be even.
					want := 0.85
					switch all := units(form.m, UnitRows) * units(form.n, UnitColumns) / threads; {
					case all < 16:
						want = 0.8 / float64(threads-1)
					case all < 32:
						want = 0.75
					}
					for _, set := range []*tileSet{&tiles256, &tiles512} {
						if busy := busyShare(set, threads, form.m, form.n, form.k); busy < want {
							t.Errorf("(%d, %d, %d), vectors of %d, %d threads: %.3f of the time is work",
								form.m, form.n, form.k, set.vector, threads, busy)
						}
					}
				}
			}
		}
	}
}

// busyShare returns the share of the threads' time in which they work.
func busyShare(set *tileSet, threads, m, n, k int) float64 {
	p := shared{m: m, n: n, k: k}
	p.cut(threads)
	var h ends
	for range min(threads, p.down*p.across) {
		h = append(h, 0)
	}
	total := 0
	for lo := 0; lo < p.down*p.across; {
		hi := lo + nextChunk(p.down*p.across-lo, 1, len(h))
		for ; lo < hi; lo++ {
			_, rows := part(lo/p.across, p.down, m, UnitRows)
			_, columns := part(lo%p.across, p.across, n, UnitColumns)
			cost := rows * ((columns + set.vector - 1) / set.vector)
			h[0] += cost
			total += cost
		}
		heap.Fix(&h, 0)
	}
	last := 0
	for _, e := range h {
		last = max(last, e)
	}
	return float64(total) / float64(threads*last)
}

// ends are the times at which threads become free.
type ends []int

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(any)          {}
func (e *ends) Pop() any          { return nil }
