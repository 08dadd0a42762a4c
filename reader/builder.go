package reader

import (
	"fmt"
	"math"
	"slices"
)

// builder gathers examples into mini-batches and passes. What it hands out is
// freshly allocated, a few slices per mini-batch: a Pass belongs to its receiver
// and the builder cannot know when it is done with.
type builder struct {
	plan           *plan
	batchSize      int
	batchesPerPass int

	seq   int64
	table keyTable
	batch Batch
	pass  Pass
	// rowOf[k] is the row in this mini-batch of the pass's key k, if rowStamp[k]
	// is the mini-batch's stamp.
	rowOf    []int32
	rowStamp []int32
	stamp    int32
	features int // how many features to allocate for the next mini-batch: those of the last one and some room
	rows     int
}

func newBuilder(o *Options, p *plan) *builder {
	b := &builder{plan: p, batchSize: o.BatchSize, batchesPerPass: o.BatchesPerPass}
	b.features = b.batchSize * len(p.fields)
	b.rows = b.features
	b.startPass()
	return b
}

func (b *builder) startPass() {
	b.table.reset(make([]uint64, 0, len(b.pass.Keys)+len(b.pass.Keys)/8))
	b.stamp = 0
	clear(b.rowStamp)
	b.pass = Pass{Seq: b.seq, Batches: make([]Batch, 0, b.batchesPerPass)}
	b.seq++
	b.startBatch()
}

func (b *builder) startBatch() {
	p, n := b.plan, b.batchSize
	b.stamp++
	b.batch = Batch{
		Labels:  make([]float32, 0, n),
		Dense:   make([]float32, 0, n*len(p.dense)),
		Offsets: append(make([]int32, 0, n*len(p.fields)+1), 0),
		Index:   make([]int32, 0, b.features),
		Rows:    make([]int32, 0, b.rows),
	}
	if p.weightColumn != "" {
		b.batch.Weights = make([]float32, 0, n)
	}
	if p.weightedBags {
		b.batch.BagWeights = make([]float32, 0, b.features)
	}
	if p.groupColumn != "" {
		b.batch.Groups = make([]uint64, 0, n)
	}
	if p.keepBad {
		b.batch.Bad = make([]bool, 0, n)
	}
	if len(p.pass) > 0 {
		b.batch.Columns = make([][]string, len(p.pass))
		for i := range b.batch.Columns {
			b.batch.Columns[i] = make([]string, 0, n)
		}
	}
}

// add copies row e of a block and returns the pass if that has made it full.
func (b *builder) add(from *block, e int) (*Pass, error) {
	p, batch := b.plan, &b.batch
	batch.N++
	batch.Labels = append(batch.Labels, from.labels[e])
	d := len(p.dense)
	batch.Dense = append(batch.Dense, from.dense[e*d:(e+1)*d]...)
	if p.weightColumn != "" {
		batch.Weights = append(batch.Weights, from.weights[e])
	}
	if p.groupColumn != "" {
		batch.Groups = append(batch.Groups, from.groups[e])
	}
	if p.keepBad {
		batch.Bad = append(batch.Bad, from.blanks[e])
	}
	fields := len(p.fields)
	offsets := from.offsets[e*fields : (e+1)*fields+1]
	first, last := offsets[0], offsets[fields]
	base := len(batch.Index)
	if base+int(last-first) > math.MaxInt32 {
		return nil, fmt.Errorf("reader: a mini-batch of %d examples has more than 2^31 features; use a smaller batch size", b.batchSize)
	}
	for _, end := range offsets[1:] {
		batch.Offsets = append(batch.Offsets, int32(base)+end-first)
	}
	for _, key := range from.keys[first:last] {
		batch.Index = append(batch.Index, b.row(b.table.number(key)))
	}
	if p.weightedBags {
		batch.BagWeights = append(batch.BagWeights, from.bagWeights[first:last]...)
	}
	for i := range p.pass {
		at := e*len(p.pass) + i
		batch.Columns[i] = append(batch.Columns[i], string(from.text[from.textEnds[at]:from.textEnds[at+1]]))
	}
	if batch.N < b.batchSize {
		return nil, nil
	}
	b.endBatch()
	if len(b.pass.Batches) < b.batchesPerPass {
		b.startBatch()
		return nil, nil
	}
	return b.endPass(), nil
}

// row numbers the pass's key k within the mini-batch.
func (b *builder) row(k int32) int32 {
	if int(k) >= len(b.rowOf) {
		b.rowOf = append(b.rowOf, 0)
		b.rowStamp = append(b.rowStamp, 0)
	}
	if b.rowStamp[k] != b.stamp {
		b.rowStamp[k] = b.stamp
		b.rowOf[k] = int32(len(b.batch.Rows))
		b.batch.Rows = append(b.batch.Rows, k)
	}
	return b.rowOf[k]
}

func (b *builder) endBatch() {
	batch := &b.batch
	allOnes := func(w []float32) bool { return !slices.ContainsFunc(w, func(x float32) bool { return x != 1 }) }
	if allOnes(batch.Weights) {
		batch.Weights = nil
	}
	if allOnes(batch.BagWeights) {
		batch.BagWeights = nil
	}
	// An eighth is added, so that a somewhat larger mini-batch does not make append
	// double the slice.
	b.features = len(batch.Index) + len(batch.Index)/8
	b.rows = len(batch.Rows) + len(batch.Rows)/8
	b.pass.Batches = append(b.pass.Batches, *batch)
	b.batch = Batch{}
}

func (b *builder) endPass() *Pass {
	b.pass.Keys = b.table.keys
	pass := b.pass
	b.startPass()
	return &pass
}

// finish returns the last pass, which may be smaller; nil if no example is left.
func (b *builder) finish() *Pass {
	if b.batch.N > 0 {
		b.endBatch()
	}
	if len(b.pass.Batches) == 0 {
		return nil
	}
	return b.endPass()
}
