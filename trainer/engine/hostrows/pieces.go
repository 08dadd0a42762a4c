package hostrows

import (
	"slices"
	"sort"

	"aibox/internal/kernel"
)

// A few rows of a mini-batch have most of the occurrences. So that threads share the work on each
// of them, the occurrences of rows with several pieces (kernel.SumPiece) are gone through before
// the rows are: each full piece of them by itself, for the statistics and again for the gradients.
// A row then needs only what the pieces gave, and goes itself through its last piece if that is
// shorter.
//
// No list of these pieces is made. A piece has the number of its first occurrence divided by
// SumPiece, which no other full piece has, as both have more than SumPiece-1 occurrences, all of
// them behind one another:
//
//	occurrences  0         64        128       192       256
//	rows         |--- 0 ----|-1-|---------- 2 ----------|3|4|
//	full pieces             .   |    1    |    2    |
//
// Row 0 has one piece only, and the last one of row 2 is not full. Piece q, if there is one, has occurrence
// (q+1)*SumPiece-1, which tells whose it is.

const (
	// pieceGrain is how many of these numbers a thread takes at a time: tens of microseconds of
	// work, which is far more than it costs to hand them over.
	pieceGrain = 16
	// rowCost is what the work on a row costs, in occurrences: a row is somewhere in memory.
	rowCost = 8
	// workGrain is how much work on rows a thread takes at a time, in occurrences: see rowAt.
	workGrain = pieceGrain * kernel.SumPiece
)

// fullPieces calls do for the full pieces of rows with several, of those with numbers lo to hi,
// with the first occurrence.
func fullPieces(starts []int32, lo, hi int, do func(number, first int)) {
	row := 0
	for q := lo; q < hi; q++ {
		last := int32((q+1)*kernel.SumPiece - 1)
		if starts[row+1] <= last {
			next, _ := slices.BinarySearch(starts[row:], last+1)
			row += next - 1
		}
		start, end := starts[row], starts[row+1]
		first := last - (last-start)%kernel.SumPiece
		if end-start > kernel.SumPiece && first+kernel.SumPiece <= end {
			do(q, int(first))
		}
	}
}

// Rows are handed to threads by the work on them: row i has the numbers from workBefore of it to
// that of the next one.

// workBefore is the work on the rows before row i, in occurrences.
func workBefore(starts []int32, i int) int { return int(starts[i]) + rowCost*i }

// rowAt is the first row before which there is so much work.
func rowAt(starts []int32, work int) int {
	return sort.Search(len(starts)-1, func(i int) bool { return workBefore(starts, i) >= work })
}

// byWork makes of a task for rows one for the work on them.
func (r *Rows) byWork(task func(lo, hi int)) func(lo, hi int) {
	return func(lo, hi int) { task(rowAt(r.batch.RowStarts, lo), rowAt(r.batch.RowStarts, hi)) }
}

// onOccurrences runs a task for full pieces, and then one made by byWork.
func (r *Rows) onOccurrences(pieces, rows func(lo, hi int)) {
	b := r.batch
	kernel.Parallel(len(b.RowBags)/kernel.SumPiece, pieceGrain, pieces)
	kernel.Parallel(workBefore(b.RowStarts, len(b.Rows)), workGrain, rows)
}

// countPieces counts the clicks of pieces.
func (r *Rows) countPieces(lo, hi int) {
	fullPieces(r.batch.RowStarts, lo, hi, func(number, first int) {
		r.clicks[number] = r.clicksOf(first, first+kernel.SumPiece)
	})
}

// sumPieces adds up the gradients of pieces.
func (r *Rows) sumPieces(lo, hi int) {
	fullPieces(r.batch.RowStarts, lo, hi, func(_, first int) {
		r.bags.sum(first, first+kernel.SumPiece, r.grads, r.grads.piece(first, r.Layout.ValueDim))
	})
}
