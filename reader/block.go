package reader

import (
	"sync/atomic"

	"aibox/reader/internal/examples"
	"aibox/reader/internal/faults"
)

// block holds decoded rows in the order of the file. Blocks travel from the workers to the reader
// and, when the mini-batches that use their rows are made, back through a free list, so their
// memory is reused; nothing in a Pass points into one.
type block struct {
	users atomic.Int32 // those who read the block: rows, and drafts of mini-batches

	file *inputFile
	examples.List
	places []rowPlace // (n) where the plan is raw, else empty

	// head is the number of bytes before the first line, of a line that began in an earlier unit;
	// -1: the block is not the first of its unit. headOpen says that this line continues in the
	// next unit, and open that the last bad row does.
	head           int64
	headOpen, open bool

	bad     faults.List
	lines   int64          // lines of the file that this block accounts for
	stored  int64          // stored bytes of the file that it accounts for
	textEnd int64          // where its unit ends in the file's text; 0: further blocks of the unit follow
	lost    *faults.Damage // what is lost after its last row; nil: nothing
}

// rowPlace says where a good row is.
type rowPlace struct {
	offset int64 // -1 in Parquet
	line   int32 // number of lines before it in the block
}

func newBlock() *block { return &block{List: examples.NewList()} }

// reset empties the block and keeps its memory.
func (b *block) reset(file *inputFile) {
	b.file = file
	b.Empty()
	b.places = b.places[:0]
	b.bad.Reset()
	b.lines, b.stored, b.textEnd, b.lost = 0, 0, 0, nil
	b.head, b.headOpen, b.open = -1, false, false
}

// bytes is roughly how much memory the rows take.
func (b *block) bytes() int { return b.Memory() + 16*len(b.places) + 32*len(b.bad.Entries) }

// addGood ends a row that was decoded; the caller then counts its line.
func (b *block) addGood(p *examples.Plan, offset int64) {
	b.EndGood(p)
	if p.Raw {
		b.places = append(b.places, rowPlace{offset: offset, line: int32(b.lines)})
	}
}

// addBad ends a row that turned out bad; the caller then counts its line.
func (b *block) addBad(p *examples.Plan, f faults.Fault, row []byte, offset int64, o *Options) {
	b.bad.Add(faults.Entry{At: int32(b.N), Line: int32(b.lines), Offset: offset}, f, row, o.QuarantineRows, o.HideCells)
	b.EndBad(p)
}
