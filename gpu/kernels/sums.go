package kernels

import (
	"strings"

	"aibox/gpu"
)

var (
	kernelColumnSums    = declare("column_sums", "w ri ii")
	kernelColumnDots    = declare("column_dots", "w ri ri ii")
	kernelFinishColumns = declare("finish_columns", "i"+strings.Repeat("wri", finishes))
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

// WorkBytes is the scratch memory, in bytes, of a sum over the rows of a matrix. It must be aligned
// to 8 bytes.
func WorkBytes(rows, columns int) int { return 8 * chunks(rows) * columns }

// columnBlocks is the geometry of kernels whose blocks each work on some columns of a chunk.
func columnBlocks(rows, columns int) gpu.Geometry {
	return gpu.Geometry{
		Grid:  gpu.Dim{X: (columns + chunkColumns - 1) / chunkColumns, Y: chunks(rows)},
		Block: gpu.Dim{X: chunkColumns, Y: chunkLanes},
	}
}

// pairBlocks is that of kernels whose threads work on two columns each.
func pairBlocks(rows, columns int) gpu.Geometry {
	g := columnBlocks(rows, columns)
	g.Block.X /= 2
	return g
}

// sum launches kernel n, whose arguments after the memory for the sums of chunks are added by more,
// and then the kernel that adds up the chunks.
func (k *Set) sum(s gpu.Stream, n number, sums Matrix, rows int, work gpu.Region, more func()) error {
	if err := k.sumChunks(s, n, columnBlocks, sums.Columns, rows, work, more); err != nil {
		return err
	}
	return k.FinishSums(s, rows, ChunkSums{sums, work})
}

// sumChunks launches kernel n, which leaves the sums of chunks of some columns in work.
func (k *Set) sumChunks(s gpu.Stream, n number, blocks func(rows, columns int) gpu.Geometry, columns, rows int, work gpu.Region, more func()) error {
	if rows == 0 {
		return nil
	}
	part, err := workPart(n, work, rows, columns)
	if err != nil {
		return err
	}
	k.with().add(gpu.Write(part))
	more()
	return k.launch(s, n, blocks(rows, columns))
}

// ChunkSums are the partial sums that ColumnChunks, Derive or a similar kernel left in Work, and
// where the sums of the columns go.
type ChunkSums struct {
	Sums Matrix
	Work gpu.Region
}

// finishes is the number of matrices whose partial sums one launch adds up.
const finishes = 4

// FinishSums adds up the partial sums of matrices with the given number of rows each, in as few
// launches as possible.
func (k *Set) FinishSums(s gpu.Stream, rows int, all ...ChunkSums) error {
	if rows == 0 {
		for _, x := range all {
			if err := s.Fill(x.Sums.Region(1), 0); err != nil {
				return err
			}
		}
		return nil
	}
	for len(all) > 0 {
		n := min(len(all), finishes)
		if err := k.finishSums(s, rows, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

func (k *Set) finishSums(s gpu.Stream, rows int, all []ChunkSums) error {
	k.with().ints(chunks(rows))
	most := 0
	for i := range finishes {
		if i >= len(all) {
			k.add(gpu.Write(none(all[0].Sums.Region(1))), gpu.Read(none(all[0].Work))).ints(0)
			continue
		}
		x := &all[i]
		part, err := workPart(kernelFinishColumns, x.Work, rows, x.Sums.Columns)
		if err != nil {
			return err
		}
		k.add(gpu.Write(x.Sums.Region(1)), gpu.Read(part)).ints(x.Sums.Columns)
		most = max(most, x.Sums.Columns)
	}
	g := columnBlocks(1, most)
	g.Grid.Y = len(all)
	return k.launch(s, kernelFinishColumns, g)
}

// workPart is the part of work that the sums of chunks take.
func workPart(n number, work gpu.Region, rows, columns int) (gpu.Region, error) {
	bytes := WorkBytes(rows, columns)
	if work.Bytes() < bytes || work.Rows > 1 || work.Offset%8 != 0 {
		return work, gpu.Invalid("kernel %q: %v is no %d bytes in one piece at a multiple of 8", names[n], work, bytes)
	}
	return gpu.Part(work.Memory, work.Offset, bytes), nil
}

// ColumnSum sums the columns of x, in an order that depends only on the number of rows. work is
// memory of at least WorkBytes(rows, x.Columns), which is overwritten.
func (k *Set) ColumnSum(s gpu.Stream, sums, x Matrix, rows int, work gpu.Region) error {
	if err := k.ColumnChunks(s, x, rows, work); err != nil {
		return err
	}
	return k.FinishSums(s, rows, ChunkSums{sums, work})
}

// ColumnChunks is the first half of ColumnSum: it leaves the sums of chunks of the columns of x in
// work, for FinishSums.
func (k *Set) ColumnChunks(s gpu.Stream, x Matrix, rows int, work gpu.Region) error {
	return k.sumChunks(s, kernelColumnSums, columnBlocks, x.Columns, rows, work, func() {
		k.reads(x, rows).ints(rows, x.Columns)
	})
}

// DotChunks is ColumnChunks of x with each row multiplied by the number of g, which has one column:
// the sums are the gradient of the weights of a layer with one output.
func (k *Set) DotChunks(s gpu.Stream, x, g Matrix, rows int, work gpu.Region) error {
	return k.sumChunks(s, kernelColumnDots, columnBlocks, x.Columns, rows, work, func() {
		k.reads(x, rows).reads(g, rows).ints(rows, x.Columns)
	})
}
