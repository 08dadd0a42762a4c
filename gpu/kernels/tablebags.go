package kernels

import "aibox/gpu"

var (
	kernelPool           = declare("table_pool", "wi wrr ri ri ri iiiil")
	kernelPieceGradients = declare("table_piece_gradients", "w ri rr ri ri iiiil")
	kernelRowGradients   = declare("table_gradients", "w ri rr ri ri r iiiil")
)

// Bags is which rows of a mini-batch each bag has, as reader.Batch has them.
type Bags struct {
	Fields   int        // of an example
	Offsets  gpu.Region // int32 (examples*Fields + 1): where bags begin in Index; none: each has one row
	Index    gpu.Region // int32: rows of the mini-batch
	Weights  gpu.Region // float32, in the order of Index; none: all are 1
	Averaged gpu.Region // int32 (Fields): not 0 where the field has the mean of its rows, by weight; none: all have the sum
	Means    gpu.Region // float32 (examples*Fields), if there are averages: what Pool multiplies the sum of each bag by
}

// Pool sums the rows of each bag, in order, given the values that Gather wrote (float32, width
// each). y has a row for each example, with the bags of its fields one after the other. A bag with
// one row and no weights has exactly the row's bits.
func (k *Set) Pool(s gpu.Stream, y Matrix, b *Bags, values gpu.Region, width, examples int) error {
	if examples == 0 {
		return nil
	}
	means := b.Means
	if b.Averaged.Memory == nil {
		means = none(b.Index)
	} else if means.Memory == nil {
		return gpu.Invalid("fields are averaged, and there is no room for what their sums are multiplied by")
	}
	k.with().writes(y, examples).add(gpu.Write(means), gpu.Read(values), gpu.Read(b.Index)).perhapsRegion(b.Offsets, b.Index)
	each := atOnce([]int{y.Stride, width}, y.Region(examples), values)
	k.perhapsRegion(b.Weights, b.Index).perhapsRegion(b.Averaged, b.Index).ints(examples, b.Fields, width, each).add(inverse(b.Fields))
	return k.launch(s, kernelPool, elements(examples, b.Fields*width/each))
}

// blockPieces is how many pieces a block adds up, at most.
const blockPieces = 16

// RowGradients sums, for each row of the mini-batch, the gradients of the bags that it occurs in,
// in order. dy is the gradient of Pool's output, and grads is float32 (Rows, width). means are
// those that Pool wrote, or none. work is memory of PieceBytes for width columns.
func (k *Set) RowGradients(s gpu.Stream, grads gpu.Region, b *TableBatch, dy Matrix, means gpu.Region, width, examples int, work gpu.Region) error {
	if b.Rows == 0 {
		return nil
	}
	of := func(to gpu.Region) *Set {
		k.with().add(gpu.Write(to)).reads(dy, examples).add(gpu.Read(b.Starts), gpu.Read(b.Bags))
		return k.perhapsRegion(b.Weights, b.Starts).perhapsRegion(means, b.Starts)
	}
	pieces := gpu.Part(work.Memory, work.Offset, PieceBytes(b.occurrences(), width))
	if n := slots(b.occurrences()); n > 0 {
		of(pieces).ints(n, b.Rows, b.Fields, width).add(inverse(b.Fields))
		if err := k.launch(s, kernelPieceGradients, rowsOfWords(width, n, blockPieces)); err != nil {
			return err
		}
	}
	each := atOnce([]int{dy.Stride, width}, dy.Region(examples), grads, pieces)
	of(grads).add(gpu.Read(pieces)).ints(b.Rows, b.Fields, width, each).add(inverse(b.Fields))
	return k.launch(s, kernelRowGradients, elements(b.Rows, width/each))
}
