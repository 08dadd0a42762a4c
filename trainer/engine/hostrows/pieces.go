package hostrows

import (
	"slices"
	"sort"

	"aibox/internal/kernel"
)

// A few rows of a mini-batch have most of the occurrences. So that threads share the work on such a
// row, the occurrences of rows with more than one piece (kernel.SumPiece) are processed before the
// rows: each full piece by itself, first for the statistics and then for the gradients. After that,
// a row needs only the results of its full pieces, and processes its last piece itself if that is
// shorter.
//
// These pieces are not listed. The number of a piece is the index of its first occurrence divided
// by SumPiece. No other full piece has the same number, since both belong to rows of more than
// SumPiece occurrences, which are contiguous:
//
//	occurrences  0         64        128       192       256
//	rows         |--- 0 ----|-1-|---------- 2 ----------|3|4|
//	full pieces             .   |    1    |    2    |
//
// Row 0 has one piece only, and the last piece of row 2 is not full. If piece q exists, it contains
// occurrence (q+1)*SumPiece-1, which identifies its row.

const (
	// pieceGrain is how many of these numbers a thread takes at a time: tens of microseconds of
	// work, far more than handing them over costs.
	pieceGrain = 16
	// rowCost is the cost of a row itself, in occurrences: the row may be anywhere in memory.
	rowCost = 8
	// workGrain is how much work on rows a thread takes at a time, in occurrences: see rowAt.
	workGrain = pieceGrain * kernel.SumPiece
)

// fullPieces calls do for each full piece with a number from lo to hi, of rows with more than one
// piece. first is its first occurrence.
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

// Rows are handed to threads by the work on them: row i has the work units from workBefore(i) to
// workBefore(i+1).

// workBefore returns the work on the rows before row i, in occurrences.
func workBefore(starts []int32, i int) int { return int(starts[i]) + rowCost*i }

// rowAt returns the first row before which there is at least that much work.
func rowAt(starts []int32, work int) int {
	return sort.Search(len(starts)-1, func(i int) bool { return workBefore(starts, i) >= work })
}

// byWork turns a task over rows into one over the work on them.
func (r *Rows) byWork(task func(lo, hi int)) func(lo, hi int) {
	return func(lo, hi int) { task(rowAt(r.batch.RowStarts, lo), rowAt(r.batch.RowStarts, hi)) }
}

// onOccurrences runs a task over full pieces, and then a task made by byWork.
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
