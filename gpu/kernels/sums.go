package kernels

import "aibox/gpu"

var (
	kernelColumnSums    = declare("column_sums", "w ri ii")
	kernelFinishColumns = declare("finish_columns", "wi r ii")
)

// Sums over rows. A first kernel sums up each column of every chunk of chunkRows rows, in
// double precision: lane i of chunkLanes adds rows i, i+chunkLanes, … of the chunk in this order, and
// the lanes are added as a tree (lanes i and i+4, then i and i+2, …). A second one does the same with the
// sums of the chunks, all of them as one chunk, and rounds the result to float32. So the order
// depends on the number of rows alone.
const (
	chunkRows    = 256
	chunkLanes   = 8
	chunkColumns = blockThreads / chunkLanes
)

func chunks(rows int) int { return (rows + chunkRows - 1) / chunkRows }

// WorkBytes is how much device memory a sum over the rows of a matrix needs beside its result. The
// memory begins at a multiple of 8 bytes.
func WorkBytes(rows, columns int) int { return 8 * chunks(rows) * columns }

// columnBlocks is the geometry of kernels of which each block works on some columns of a chunk.
func columnBlocks(rows, columns int) gpu.Geometry {
	return gpu.Geometry{
		Grid:  gpu.Dim{X: (columns + chunkColumns - 1) / chunkColumns, Y: chunks(rows)},
		Block: gpu.Dim{X: chunkColumns, Y: chunkLanes},
	}
}

// sum launches kernel n, whose arguments behind the memory for the sums of chunks are those
// added by more, and then the one that adds up the chunks.
func (k *Set) sum(s gpu.Stream, n number, sums Matrix, rows int, work gpu.Region, more func()) error {
	if rows == 0 {
		return s.Fill(sums.Region(1), 0)
	}
	columns := sums.Columns
	if work.Bytes() < WorkBytes(rows, columns) || work.Rows > 1 || work.Offset%8 != 0 {
		return gpu.Invalid("kernel %q: %v is no %d bytes in one piece at a multiple of 8", names[n], work, WorkBytes(rows, columns))
	}
	work = gpu.Part(work.Memory, work.Offset, WorkBytes(rows, columns))
	k.with().add(gpu.Write(work))
	more()
	if err := k.launch(s, n, columnBlocks(rows, columns)); err != nil {
		return err
	}
	k.with().writes(sums, 1).add(gpu.Read(work)).ints(chunks(rows), columns)
	return k.launch(s, kernelFinishColumns, columnBlocks(1, columns))
}

// ColumnSum sums up the columns of x, in an order that depends on the number of rows alone. Work is
// memory of at least WorkBytes(rows, x.Columns), whose contents are overwritten.
func (k *Set) ColumnSum(s gpu.Stream, sums, x Matrix, rows int, work gpu.Region) error {
	return k.sum(s, kernelColumnSums, sums, rows, work, func() {
		k.reads(x, rows).ints(rows, x.Columns)
	})
}
