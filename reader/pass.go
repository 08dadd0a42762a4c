package reader

import "unsafe"

// Pass is a fixed number of consecutive mini-batches (AIBox §3), the unit in
// which work moves through the pipeline. A Pass is immutable once emitted and
// owned by the receiver, who may give it back with Recycle.
type Pass struct {
	Seq     int64    // 0, 1, 2, … within one reading of the data
	Keys    []uint64 // unique feature keys of the pass, in order of first use
	Batches []Batch
	Bytes   int64   // input bytes (compressed, as stored) decoded up to the end of this pass, in steps of whole units (see the package)
	End     *Cursor // where reading goes on after this pass; nil: the pass was not made by a Reader, or is only a part of such a one

	pool *passPool // nil: the pass was not made by a Reader
}

// Batch is one mini-batch of N examples in columns.
//
// Sparse features are compressed rows over (example, field): the bag of field
// f of example e is Index[Offsets[e*F+f]:Offsets[e*F+f+1]], where F is the
// number of fields. Index refers to Rows, the unique rows of the mini-batch in
// order of first use, and Rows refers to Pass.Keys.
//
// The inverted index says which bags use row i: bags RowBags[RowStarts[i]:RowStarts[i+1]], in
// ascending order, where bag e*F+f is that of field f of example e. If a bag has a row twice, the
// row lists the bag twice. Gradients can thus be summed row by row, without sorting and without
// locks, in an order that does not depend on threads.
type Batch struct {
	N          int
	Labels     []float32 // (N), 0 or 1; NaN where Options.KeepUnlabelled let an example without one in
	Weights    []float32 // (N), or nil when all are 1
	Dense      []float32 // (N, number of dense features)
	Offsets    []int32   // (N*F+1)
	Index      []int32   // (features), into Rows
	BagWeights []float32 // (features), or nil when all are 1
	Rows       []int32   // (unique rows of the mini-batch), into Pass.Keys
	RowStarts  []int32   // (unique rows + 1), into RowBags
	RowBags    []int32   // (features), the bag of each feature, by row
	RowWeights []float32 // (features), the weight of each feature, by row; nil when all are 1
	Groups     []uint64  // (N), hash of the group-by field's value; nil without one
	// Bad marks the rows that are bad or lost, which have no features (N); nil without
	// Options.KeepBadRows.
	Bad []bool
	// Columns holds the raw text of the pass-through columns, [column][example];
	// nil unless asked for.
	Columns [][]string

	made   bool // by a Reader, or by who says so
	single bool // each bag has one feature

	// The memory of Weights, BagWeights and RowWeights, which may be nil.
	weights, bagWeights, rowWeights []float32
}

// Made reports whether a Reader made the mini-batch, so that all its feature, bag and row numbers
// are in range. Code that changes a mini-batch must put its slices into a new Batch, which is not
// Made.
func (b *Batch) Made() bool { return b.made }

// SetMade says that the mini-batch is as a Reader would have made it.
func (b *Batch) SetMade() {
	b.made, b.single = true, len(b.Index) == len(b.Offsets)-1
	if !b.single {
		return
	}
	for i, at := range b.Offsets {
		if int(at) != i {
			b.single = false
			return
		}
	}
}

// Single reports whether the mini-batch is Made and each of its bags has exactly one feature, which
// makes Offsets redundant.
func (b *Batch) Single() bool { return b.made && b.single }

// Features is the number of sparse feature occurrences in the mini-batch.
func (b *Batch) Features() int { return len(b.Index) }

// MemoryBytes is what a pass takes in memory.
func (p *Pass) MemoryBytes() int64 {
	n := int64(unsafe.Sizeof(*p)) + 8*int64(cap(p.Keys)) + int64(cap(p.Batches))*int64(unsafe.Sizeof(Batch{}))
	for i := range p.Batches {
		b := &p.Batches[i]
		n += 4*int64(cap(b.Labels)+cap(b.Dense)+cap(b.Offsets)+cap(b.Index)+cap(b.Rows)+cap(b.RowStarts)+cap(b.RowBags)) +
			4*int64(max(cap(b.Weights), cap(b.weights))+max(cap(b.BagWeights), cap(b.bagWeights))+max(cap(b.RowWeights), cap(b.rowWeights))) +
			8*int64(cap(b.Groups)) + int64(cap(b.Bad))
		for _, texts := range b.Columns {
			n += int64(unsafe.Sizeof("")) * int64(cap(texts))
			for _, s := range texts {
				n += int64(len(s))
			}
		}
	}
	return n
}
