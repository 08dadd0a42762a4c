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

// finder finds the places of rows on all threads.
type finder struct {
	to, rows, at []int32
	task         func(lo, hi int)
}

// findGrain is how many places one thread finds at a time.
const findGrain = 8 << 10

// find writes the place of each row, which at has, to to.
func (f *finder) find(to, rows, at []int32) {
	f.to, f.rows, f.at = to, rows, at
	kernel.Parallel(len(rows), findGrain, f.task)
	f.to, f.rows, f.at = nil, nil, nil
}

func (f *finder) run(lo, hi int) {
	for i, row := range f.rows[lo:hi] {
		f.to[lo+i] = f.at[row]
	}
}
