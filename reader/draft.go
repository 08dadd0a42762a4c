package reader

import (
	"fmt"
	"math"
	"slices"

	"aibox/internal/panics"
	"aibox/reader/internal/examples"
	"aibox/reader/internal/numbering"
)

// draft lists the examples of a mini-batch that is still to be made. The reader's goroutine fills
// it, hands it to a worker through stream.drafts, and gets it back when done has an element.
type draft struct {
	parts []part
	n     int // examples

	pass     *Pass // whose mini-batch number at this is
	at       int
	progress progress // as of this mini-batch, if it completes its pass

	keys []uint64 // the mini-batch's unique keys; the workers' result, beside the mini-batch
	err  error
	done chan struct{} // of capacity 1
	made bool          // done's element was received
}

// part is rows lo to hi-1 of a block.
type part struct {
	block  *block
	lo, hi int32
}

func newDraft() *draft { return &draft{done: make(chan struct{}, 1)} }

// add appends examples to the draft, and retains their block.
func (d *draft) add(b *block, lo, hi int) {
	d.n += hi - lo
	if last := len(d.parts) - 1; last >= 0 && d.parts[last].block == b {
		if int(d.parts[last].hi) == lo {
			d.parts[last].hi = int32(hi)
			return
		}
	} else {
		b.users.Add(1)
	}
	d.parts = append(d.parts, part{b, int32(lo), int32(hi)})
}

// leave releases the blocks.
func (d *draft) leave(s *stream) {
	for i, part := range d.parts {
		if i == 0 || d.parts[i-1].block != part.block {
			s.release(part.block)
		}
	}
	clear(d.parts)
	d.parts = d.parts[:0]
}

// move copies the draft's rows out of the block, and releases the block.
func (d *draft) move(s *stream, from *block) {
	if !slices.ContainsFunc(d.parts, func(p part) bool { return p.block == from }) {
		return
	}
	to := s.newBlock(nil)
	for _, part := range d.parts {
		for e := part.lo; e < part.hi; e++ {
			to.CopyRow(s.plan, &part.block.List, int(e))
		}
	}
	d.leave(s)
	d.parts = append(d.parts, part{to, 0, int32(to.N)})
}

// batchMaker makes mini-batches of drafts. Each worker has one.
type batchMaker struct {
	table numbering.Table
}

// make makes the draft's mini-batch and gives the draft back.
func (m *batchMaker) make(s *stream, d *draft) {
	d.err = panics.Do("making a mini-batch", func() error { return m.fill(s.plan, d) })
	d.leave(s)
	d.done <- struct{}{}
}

// fill copies the draft's examples into its mini-batch and numbers their keys in the
// order of their first use.
func (m *batchMaker) fill(p *examples.Plan, d *draft) error {
	features, ones, bagOnes := 0, true, true
	fields := p.Fields()
	for _, part := range d.parts {
		first, last := part.keys(fields)
		features += last - first
		ones = ones && allOnes(part.block.Weights, int(part.lo), int(part.hi))
		bagOnes = bagOnes && allOnes(part.block.BagWeights, first, last)
	}
	if features > math.MaxInt32 {
		return fmt.Errorf("reader: a mini-batch of %d examples has more than 2^31 features; use a smaller batch size", d.n)
	}
	b := &d.pass.Batches[d.at]
	b.reset(p, d.n, features)
	if !ones {
		b.weights = room(b.weights, d.n)
		b.Weights = b.weights
	}
	if !bagOnes {
		b.bagWeights = room(b.bagWeights, features)
		b.BagWeights = b.bagWeights
	}
	m.table.Reset(d.keys)
	for _, part := range d.parts {
		from, lo, hi := part.block, int(part.lo), int(part.hi)
		b.Labels = append(b.Labels, from.Labels[lo:hi]...)
		b.Dense = append(b.Dense, from.Dense[lo*p.DenseWidth():hi*p.DenseWidth()]...)
		if !ones {
			b.Weights = append(b.Weights, from.Weights[lo:hi]...)
		}
		if p.Grouped() {
			b.Groups = append(b.Groups, from.Groups[lo:hi]...)
		}
		if p.KeepBad {
			b.Bad = append(b.Bad, from.Blanks[lo:hi]...)
		}
		first, last := part.keys(fields)
		base := len(b.Index)
		b.Offsets = examples.AppendShifted(b.Offsets, from.Offsets[lo*fields+1:hi*fields+1], int32(base-first))
		b.Index = b.Index[:base+last-first]
		m.table.Number(from.Keys[first:last], b.Index[base:])
		if !bagOnes {
			b.BagWeights = append(b.BagWeights, from.BagWeights[first:last]...)
		}
		for i := range p.Passed() {
			for e := lo; e < hi; e++ {
				at := e*p.Passed() + i
				b.Columns[i] = append(b.Columns[i], string(from.Text[from.TextEnds[at]:from.TextEnds[at+1]]))
			}
		}
	}
	d.keys = m.table.Keys()
	b.Invert(len(d.keys))
	b.SetMade()
	return nil
}

// keys are the keys of the part's examples: keys first to last-1 of the block.
func (p part) keys(fields int) (first, last int) {
	return int(p.block.Offsets[int(p.lo)*fields]), int(p.block.Offsets[int(p.hi)*fields])
}

// allOnes says whether weights lo to hi-1 are 1, or there are no weights.
func allOnes(w []float32, lo, hi int) bool {
	return len(w) == 0 || !slices.ContainsFunc(w[lo:hi], func(x float32) bool { return x != 1 })
}
