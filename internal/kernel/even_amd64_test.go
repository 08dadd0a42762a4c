package kernel

import (
	"container/heap"
	"testing"
)

// TestProductsKeepThreadsBusy counts: threads take cells in turn as parallel hands
// them out, and a cell takes as long as its multiply-adds in whole vectors. All threads
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
				for _, threads := range []int{1, 2, 3, 4, 8, 16} {
					work := form.m * form.n * form.k
					if work < 2*threads*threadWork {
						continue // would use fewer threads
					}
					want := 0.96
					if threads == 2 && batch >= 2048 {
						want = 0.97
					}
					if work < 64*threads*threadWork && threads > 2 {
						want = 0.8 // some 300 microseconds a thread
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
	width := set.columns()
	p := product{set: set, m: m, panels: (n + width - 1) / width, columns: n}
	p.cut(threads)
	cells := (m + p.blockRows - 1) / p.blockRows * p.panels
	grain := max(1, chunkWork/(p.blockRows*width*k))
	var h ends
	for range min(threads, (cells+grain-1)/grain) {
		h = append(h, 0)
	}
	total := 0
	for lo := 0; lo < cells; {
		hi := lo + nextChunk(cells-lo, grain, len(h))
		for ; lo < hi; lo++ {
			rows := min(p.blockRows, m-lo/p.panels*p.blockRows)
			columns := min(width, n-lo%p.panels*width)
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
