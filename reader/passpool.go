package reader

import "aibox/reader/internal/examples"

// passPool keeps passes that were given back, for their memory.
type passPool = freeList[*Pass]

// maxFreePasses bounds the idle memory. Passes are given back about as fast as they are made, so
// few are free at any time.
const maxFreePasses = 4

// newPass returns a pass with that many mini-batches, whose contents are undefined.
func newPass(pool *passPool, seq int64, batches int) *Pass {
	p, ok := pool.get()
	if !ok {
		p = &Pass{pool: pool}
	}
	if cap(p.Batches) < batches {
		p.Batches = make([]Batch, batches)
	}
	p.Seq, p.Bytes, p.End, p.Keys, p.Batches = seq, 0, nil, p.Keys[:0], p.Batches[:batches]
	return p
}

// Recycle returns the memory of a pass to the reader that made it, which reuses it for later
// passes, so that reading produces no garbage. The pass, its mini-batches and its keys must not be
// used afterwards. A pass that no reader made is left to the garbage collector. Recycle may be
// called from any goroutine, even after Close.
func (p *Pass) Recycle() {
	if p.pool != nil {
		p.pool.put(p)
	}
}

// room returns an empty slice with capacity for n elements, in the memory of s if that suffices.
// New memory is an eighth larger, so that slightly larger requests later do not allocate.
func room[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, 0, n+n/8)
	}
	return s[:0]
}

// reset empties a mini-batch and gives it room for n examples with that many features.
func (b *Batch) reset(p *examples.Plan, n, features int) {
	b.N, b.made = n, false
	b.Labels = room(b.Labels, n)
	b.Dense = room(b.Dense, n*p.DenseWidth())
	b.Offsets = append(room(b.Offsets, n*p.Fields()+1), 0)
	b.Index = room(b.Index, features)
	b.Weights, b.BagWeights = nil, nil
	if p.Grouped() {
		b.Groups = room(b.Groups, n)
	}
	if p.KeepBad {
		b.Bad = room(b.Bad, n)
	}
	if p.Passed() > 0 && b.Columns == nil {
		b.Columns = make([][]string, p.Passed())
	}
	for i := range b.Columns {
		b.Columns[i] = room(b.Columns[i], n)
	}
}
