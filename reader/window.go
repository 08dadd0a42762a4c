package reader

import (
	"aibox/reader/internal/examples"
	"aibox/reader/internal/hashes"
)

// window holds consecutive examples and yields them in a random order. It is
// either filling or draining.
type window struct {
	size     int
	seed     uint64
	epoch    int
	number   uint64 // windows shuffled so far
	block    *block
	order    []int32
	start    Position // of its first example in the input
	draining bool
	next     int // into order, of the next example to yield
	taken    int // how many examples of the first window an earlier reading has yielded
}

func newWindow(o *Options) *window {
	w := &window{size: o.ShuffleBuffer, seed: o.Seed, epoch: o.Epoch, block: newBlock()}
	w.block.users.Store(1) // it never goes to the free list
	if o.Start != nil {
		w.number, w.taken = o.Start.Windows, o.Start.Taken
	}
	return w
}

// restart empties the window for the next examples. REQUIRES: its block is not in use elsewhere.
func (w *window) restart() {
	w.block.reset(nil)
	w.order = w.order[:0]
	w.draining, w.next = false, 0
}

// drained says whether the window has yielded all that it held.
func (w *window) drained() bool { return w.draining && w.next == len(w.order) }

// add copies row e of a block.
func (w *window) add(p *examples.Plan, from *block, e int) {
	w.order = append(w.order, int32(w.block.N))
	w.block.CopyRow(p, &from.List, e)
}

// full says whether the window takes no more examples: it holds as many as it may, or
// its features nearly exceed what offsets of 32 bits can count.
func (w *window) full() bool {
	const most = 1 << 30
	return len(w.order) == w.size || len(w.block.Keys) > most || len(w.block.Text) > most
}

// shuffle draws the order (Fisher-Yates) and begins to drain.
func (w *window) shuffle() {
	w.draining = true
	w.next, w.taken = w.taken, 0
	stream := hashes.Mix(uint64(w.epoch)) ^ w.number
	w.number++
	for i := len(w.order) - 1; i > 0; i-- {
		// The bias of the modulo is below 2^-32 for a window of any size.
		j := hashes.Random(w.seed, hashes.Shuffle, stream, uint64(i)) % uint64(i+1)
		w.order[i], w.order[j] = w.order[j], w.order[i]
	}
}
