package main

import (
	"math"

	"aibox/sparsetable"
)

// rows are the rows of a mini-batch, at the positions of its keys, to be
// updated in place. *sparsetable.WorkingSet is one.
type rows interface {
	Row(i int) []float32
}

// flatRows are rows copied out of a store, one after the other.
type flatRows struct {
	words int
	data  []float32
}

func (r *flatRows) Row(i int) []float32 {
	return r.data[i*r.words : (i+1)*r.words : (i+1)*r.words]
}

// flatRing hands out flatRows in turn. At most three of them are in use: those of the
// mini-batch in training, those of the one before it until its rows have been copied, and
// those of the one that is being pulled.
type flatRing struct {
	words int
	ring  [3]flatRows
	next  int
}

func (f *flatRing) take(n int) *flatRows {
	r := &f.ring[f.next]
	f.next = (f.next + 1) % len(f.ring)
	r.words = f.words
	if cap(r.data) < n*f.words {
		r.data = make([]float32, n*f.words)
	}
	r.data = r.data[:n*f.words]
	return r
}

// initRow fills the row of a new key, which is all zeros, with small values that depend only on the
// key. Statistics stay zero.
func initRow(l sparsetable.Layout, key uint64, row []float32) {
	values := l.Values(row)
	x := key
	for i := range values {
		x = x*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
		values[i] = (float32(x>>40)/(1<<24) - 0.5) * 0.02
	}
}

// loadRow is the row of a key as a full store holds it: trained once.
func loadRow(l sparsetable.Layout, key uint64, row []float32) {
	clear(row)
	initRow(l, key, row)
	l.SetStats(row, sparsetable.RowStats{Show: 1, Count: 1})
}

// update is what the trainer does to a mini-batch: it reads and writes every row. It
// returns the digest after adding to it what the rows held before.
func update(l sparsetable.Layout, n int, r rows, digest uint64) uint64 {
	for i := range n {
		row := r.Row(i)
		st := l.Stats(row)
		digest = digest*digestFactor + uint64(st.Count)<<32 + uint64(math.Float32bits(row[0]))
		values := l.Values(row)
		for j := range values {
			values[j] -= 0.01 * (values[j] + 0.001)
		}
		state := l.State(row)
		for j := range state {
			state[j] += 0.5
		}
		st.Show++
		st.Count++
		l.SetStats(row, st)
	}
	return digest
}

const digestFactor = 0x9e3779b97f4a7c15

// digestPower is the factor by which n more rows multiply a digest. With it, the digest
// of a mini-batch is computed from those of its parts.
func digestPower(n int) uint64 {
	p := uint64(1)
	for f := uint64(digestFactor); n > 0; n >>= 1 {
		if n&1 != 0 {
			p *= f
		}
		f *= f
	}
	return p
}

// overlay finds keys that two mini-batches share.
type overlay struct {
	at map[uint64]uint32
}

// copyShared copies the rows that both mini-batches have from the earlier to the later one. It is
// for stores that return copies, which read the later one's rows while the earlier one was in
// training.
func (o *overlay) copyShared(laterKeys []uint64, later rows, earlierKeys []uint64, earlier rows) {
	if o.at == nil {
		o.at = make(map[uint64]uint32, len(earlierKeys))
	}
	clear(o.at)
	for i, k := range earlierKeys {
		o.at[k] = uint32(i)
	}
	for i, k := range laterKeys {
		if j, ok := o.at[k]; ok {
			copy(later.Row(i), earlier.Row(int(j)))
		}
	}
}
