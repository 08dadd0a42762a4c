package devicerows

import "aibox/internal/kernel"

// copier copies slices on all threads.
type copier struct {
	pieces []piece
	bytes  int
	task   func(lo, hi int)
}

type piece struct {
	to, from []byte
	at       int // of its first byte among those of all pieces
}

// copyGrain is how many bytes one thread copies at a time.
const copyGrain = 256 << 10

func (c *copier) add(to, from []byte) {
	if len(from) > 0 {
		c.pieces = append(c.pieces, piece{to, from, c.bytes})
		c.bytes += len(from)
	}
}

// copy copies all pieces that were added.
func (c *copier) copy() {
	kernel.Parallel(c.bytes, copyGrain, c.task)
	clear(c.pieces)
	c.pieces, c.bytes = c.pieces[:0], 0
}

func (c *copier) run(lo, hi int) {
	for i := range c.pieces {
		p := &c.pieces[i]
		if from, to := max(lo, p.at), min(hi, p.at+len(p.from)); from < to {
			copy(p.to[from-p.at:to-p.at], p.from[from-p.at:to-p.at])
		}
	}
}
