package reader

import "unsafe"

// Pass is a fixed number of consecutive mini-batches (AIBox §3), the unit in
// which work moves through the pipeline. A Pass is immutable once emitted and
// owned by the receiver.
type Pass struct {
	Seq     int64    // 0, 1, 2, … within one reading of the data
	Keys    []uint64 // unique feature keys of the pass, in order of first use
	Batches []Batch
	Bytes   int64 // input bytes (compressed, as stored) decoded up to the end of this pass, in steps of whole units (see the package)
}

// Batch is one mini-batch of N examples in columns.
//
// Sparse features are compressed rows over (example, field): the bag of field
// f of example e is Index[Offsets[e*F+f]:Offsets[e*F+f+1]], where F is the
// number of fields. Index refers to Rows, the unique rows of the mini-batch in
// order of first use, and Rows refers to Pass.Keys.
type Batch struct {
	N          int
	Labels     []float32 // (N), 0 or 1; NaN where Options.KeepUnlabelled let an example without one in
	Weights    []float32 // (N), or nil when all are 1
	Dense      []float32 // (N, number of dense features)
	Offsets    []int32   // (N*F+1)
	Index      []int32   // (features), into Rows
	BagWeights []float32 // (features), or nil when all are 1
	Rows       []int32   // (unique rows of the mini-batch), into Pass.Keys
	Groups     []uint64  // (N), hash of the group-by field's value; nil without one
	// Bad marks the rows that are bad or lost, which have no features (N); nil without
	// Options.KeepBadRows.
	Bad []bool
	// Columns holds the raw text of the pass-through columns, [column][example];
	// nil unless asked for.
	Columns [][]string
}

// Features is the number of sparse feature occurrences in the mini-batch.
func (b *Batch) Features() int { return len(b.Index) }

// MemoryBytes is what a pass takes in memory.
func (p *Pass) MemoryBytes() int64 {
	n := int64(unsafe.Sizeof(*p)) + 8*int64(cap(p.Keys)) + int64(cap(p.Batches))*int64(unsafe.Sizeof(Batch{}))
	for i := range p.Batches {
		b := &p.Batches[i]
		n += 4*int64(cap(b.Labels)+cap(b.Weights)+cap(b.Dense)+cap(b.Offsets)+cap(b.Index)+cap(b.BagWeights)+cap(b.Rows)) + 8*int64(cap(b.Groups)) + int64(cap(b.Bad))
		for _, texts := range b.Columns {
			n += int64(unsafe.Sizeof("")) * int64(cap(texts))
			for _, s := range texts {
				n += int64(len(s))
			}
		}
	}
	return n
}
