package kernels

import (
	"aibox/gpu"
	"aibox/internal/kernel"
)

// Rows of the sparse table are words in device memory, in the shape of sparsetable.Layout: values,
// state of the optimizer, show, click, day last seen, count. What kernels do with them gives the
// bits of the engine for the CPU: sums over the occurrences of a row are in the order of the
// mini-batch, by pieces (kernel.SumPiece), and statistics are decayed in double precision. A step
// of training
//
//   - brings the statistics of its rows up to date, which decides whose values are used (Collect),
//   - computes by how much rows have decayed since they were last used, if they do (Settle),
//   - gathers their values as float32 (Gather), and pools those of each bag (Pool),
//   - after the backward pass, adds up the gradients of each row's bags (RowGradients),
//   - and updates the rows (UpdateRows).
//
// Inference has Admit in place of Collect, and ends with Pool.

// Format is the encoding of values, a sparsetable.ValueFormat.
type Format int

const (
	Float32 Format = iota
	Float16
	BFloat16
)

// Table is the rows of a pass.
type Table struct {
	Rows   gpu.Region // all of them, one after the other
	Values int        // of a row
	State  int        // words of a row's state
	Format Format
	Decays bool // the last word of the state is a clock of package decay
}

// valueWords is how many words the values of a row take.
func (t *Table) valueWords() int {
	if t.Format == Float32 {
		return t.Values
	}
	return (t.Values + 1) / 2
}

// statWords is how many words the statistics of a row take.
const statWords = 4

// Words is how many words a row takes.
func (t *Table) Words() int { return t.valueWords() + t.State + statWords }

// TableBatch is the rows of a mini-batch, and where they occur, as reader.Batch has them.
type TableBatch struct {
	Rows    int        // how many different ones
	Fields  int        // of an example; bag b belongs to field b mod Fields
	Index   gpu.Region // int32: the place of each row in the table
	Starts  gpu.Region // int32: where the bags of each row begin, and the last ones end; not for inference
	Bags    gpu.Region // int32: the bags that each row occurs in, in ascending order; not for inference
	Weights gpu.Region // float32: the weight of each occurrence, in the order of Bags; none: all are 1
}

// occurrences is how often rows occur.
func (b *TableBatch) occurrences() int { return b.Bags.Bytes() / 4 }

// slots is how many pieces of kernel.SumPiece occurrences the rows may have: see table.h.
func slots(occurrences int) int { return occurrences / kernel.SumPiece }

// PieceBytes is the work memory that RowGradients needs for a mini-batch with the given numbers of
// occurrences of rows and of columns.
func PieceBytes(occurrences, columns int) int { return 4 * slots(occurrences) * columns }

// clickBlocks is the number of blocks of table_clicks for the given number of occurrences and their
// end.
func clickBlocks(occurrences int) int { return occurrences/blockThreads + 1 }

// ClickBytes is the work memory that Collect needs for a mini-batch with the given number of
// occurrences of rows.
func ClickBytes(occurrences int) int { return 4 * (occurrences + 1 + clickBlocks(occurrences)) }

// atOnce returns how many numbers a thread reads and writes at once: 4 if all these regions are
// aligned to 16 bytes and all distances in words are divisible by 4, else 1.
func atOnce(words []int, regions ...gpu.Region) int {
	for _, n := range words {
		if n%4 != 0 {
			return 1
		}
	}
	for _, r := range regions {
		if r.Offset%16 != 0 {
			return 1
		}
	}
	return 4
}

// atOnce is atOnce for the values of rows and related regions.
func (t *Table) atOnce(others ...gpu.Region) int {
	if t.Format != Float32 {
		return 1
	}
	return min(atOnce([]int{t.Values, t.Words()}, t.Rows), atOnce(nil, others...))
}

// inverse returns the factor with which kernels divide by d, by a multiplication that is exact for
// int32.
func inverse(d int) gpu.Arg { return gpu.Int64(int64(1<<63/uint64(max(d, 1)) + 1)) }

// Statistics is how Collect changes the statistics of rows.
type Statistics struct {
	Day            uint32
	ShowDecay      float32 // of shows and clicks for each day in which a row was not seen
	MinOccurrences uint32  // values are used from this occurrence of a row on
}

var (
	kernelClicks  = declare("table_clicks", "wwrr ii")
	kernelCollect = declare("table_collect", "rurrrrw lfl ii")
	kernelAdmit   = declare("table_admit", "rrw l ii")
	kernelGather  = declare("table_gather", "wrrrri iiiii")
)

// rowThreads is the geometry of kernels with a thread for each row.
func rowThreads(rows int) gpu.Geometry { return gpu.Linear(rows, blockThreads) }

// none is an empty region, in place of an optional one.
func none(of gpu.Region) gpu.Region { return gpu.Part(of.Memory, of.Offset, 0) }

// perhapsRegion adds an optional region that the kernel reads, and 1 or 0. If it is absent, the
// kernel gets zero bytes of another region in its place.
func (k *Set) perhapsRegion(r, other gpu.Region) *Set {
	if r.Memory == nil {
		return k.add(gpu.Read(none(other))).ints(0)
	}
	return k.add(gpu.Read(r)).ints(1)
}

// Collect adds the occurrences of the mini-batch, and those with label 1 of labels (float32, one
// for each example), to the statistics of its rows, unless the flag is set. It sets admitted
// (int32, one for each row) to 1 where values are used, else to 0. Work is memory of ClickBytes.
func (k *Set) Collect(s gpu.Stream, flag gpu.Region, t *Table, b *TableBatch, c Statistics, labels, admitted, work gpu.Region) error {
	if b.Rows == 0 {
		return nil
	}
	n := b.occurrences()
	before, blocks := gpu.Part(work.Memory, work.Offset, 4*(n+1)), gpu.Part(work.Memory, work.Offset+4*(n+1), 4*clickBlocks(n))
	k.with().add(gpu.Write(before), gpu.Write(blocks), gpu.Read(b.Bags), gpu.Read(labels)).ints(n, b.Fields)
	if err := k.launch(s, kernelClicks, rowThreads(n+1)); err != nil {
		return err
	}
	k.with().add(gpu.Read(flag), gpu.Update(t.Rows), gpu.Read(b.Index), gpu.Read(b.Starts), gpu.Read(before), gpu.Read(blocks),
		gpu.Write(admitted), gpu.Int64(int64(c.Day)), gpu.Float32(c.ShowDecay), gpu.Int64(int64(c.MinOccurrences)))
	k.ints(b.Rows, t.Words())
	return k.launch(s, kernelCollect, rowThreads(b.Rows))
}

// Admit sets admitted as Collect does, for inference: rows that were never trained are not used.
func (k *Set) Admit(s gpu.Stream, t *Table, b *TableBatch, minOccurrences uint32, admitted gpu.Region) error {
	if b.Rows == 0 {
		return nil
	}
	k.with().add(gpu.Read(t.Rows), gpu.Read(b.Index), gpu.Write(admitted), gpu.Int64(int64(minOccurrences))).ints(b.Rows, t.Words())
	return k.launch(s, kernelAdmit, rowThreads(b.Rows))
}

// Gather writes the values of the mini-batch's rows to values, float32 (Rows, t.Values), multiplied
// by the factors that Settle computed, if the rows decay. Values of rows that are not admitted are
// 0.
func (k *Set) Gather(s gpu.Stream, t *Table, b *TableBatch, admitted, factors, values gpu.Region) error {
	if b.Rows == 0 {
		return nil
	}
	if t.Decays != (factors.Memory != nil) {
		return gpu.Invalid("factors of rows that do not decay, or none of rows that do")
	}
	k.with().add(gpu.Write(values), gpu.Read(t.Rows), gpu.Read(b.Index), gpu.Read(admitted)).perhapsRegion(factors, admitted)
	each := t.atOnce(values)
	k.ints(b.Rows, t.Words(), t.Values, int(t.Format), each)
	return k.launch(s, kernelGather, elements(b.Rows, t.valueWords()/each))
}
