package reader

import "aibox/reader/internal/examples"

// passPool keeps passes that were given back, for their memory.
type passPool = freeList[*Pass]

// maxFreePasses bounds the memory that lies idle. Passes are given back about as fast as
// they are made, so that few are free at any time.
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

// Recycle gives the memory of a pass back to the reader that made it, which uses it for
// later passes; so reading causes no garbage. Nobody may use the pass, its mini-batches or
// its keys afterwards. A pass that another part of the program has composed is left to
// the garbage collector. Recycle may be called from any goroutine, also after Close.
func (p *Pass) Recycle() {
	if p.pool != nil {
		p.pool.put(p)
	}
}

// room returns an empty slice for n elements, with the memory of s if that is enough. An
// eighth is added, so that slightly larger needs later do not take new memory.
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
