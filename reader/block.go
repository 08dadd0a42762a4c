package reader

import (
	"math"
	"slices"
	"sync/atomic"

	"aibox/reader/internal/faults"
)

// block holds decoded rows in columns, in the order of the file. Blocks travel
// from the workers to the reader and, when the mini-batches that use their rows are made,
// back through a free list, so their memory is reused; nothing in a Pass points into one.
//
// With D dense features (indicators are the last of them), F fields and P pass-through columns:
//
//	example      0          1                 n-1
//	labels    [ y0       | y1       | ... |        ]  (n)
//	dense     [ D values | D values | ... |        ]  (n*D)
//	offsets   [ 0 | F ends | F ends | ... |        ]  (n*F+1), into keys
//	textEnds  [ 0 | P ends | P ends | ... |        ]  (n*P+1), into text
type block struct {
	users atomic.Int32 // those who read the block: rows, and drafts of mini-batches

	file       *inputFile
	n          int
	labels     []float32
	weights    []float32 // (n) where the plan has a weight column, else empty
	dense      []float32
	offsets    []int32
	keys       []uint64
	bagWeights []float32 // as long as keys where the plan has weighted bags, else empty
	groups     []uint64  // (n) where the plan has a group column, else empty
	stats      []float64 // (n*S) inputs of the columns that Scan looks at; NaN: missing
	textEnds   []int32
	text       []byte
	places     []rowPlace // (n) where the plan is raw, else empty
	blanks     []bool     // (n) where the plan keeps bad rows: which rows are such; else empty

	// head is how many bytes of a line that began in an earlier unit are before the
	// first line; -1: the block is not the first of its unit. headOpen says that the
	// line goes on in the next unit, and open that the last bad row does.
	head           int64
	headOpen, open bool

	bad     faults.List
	lines   int64          // lines of the file that this block accounts for
	stored  int64          // stored bytes of the file that it accounts for
	textEnd int64          // where its unit ends in the file's text; 0: further blocks of the unit follow
	lost    *faults.Damage // what is lost after its last row; nil: nothing
}

// copyRow appends row e of another block.
func (b *block) copyRow(p *plan, from *block, e int) {
	b.labels = append(b.labels, from.labels[e])
	d := p.denseWidth()
	b.dense = append(b.dense, from.dense[e*d:(e+1)*d]...)
	if p.weightColumn != "" {
		b.weights = append(b.weights, from.weights[e])
	}
	if p.groupColumn != "" {
		b.groups = append(b.groups, from.groups[e])
	}
	if p.keepBad {
		b.blanks = append(b.blanks, from.blanks[e])
	}
	fields := len(p.fields)
	offsets := from.offsets[e*fields : (e+1)*fields+1]
	first, last := offsets[0], offsets[fields]
	b.offsets = appendShifted(b.offsets, offsets[1:], int32(len(b.keys))-first)
	b.keys = append(b.keys, from.keys[first:last]...)
	if p.weightedBags {
		b.bagWeights = append(b.bagWeights, from.bagWeights[first:last]...)
	}
	texts := from.textEnds[e*len(p.pass) : (e+1)*len(p.pass)+1]
	b.textEnds = appendShifted(b.textEnds, texts[1:], int32(len(b.text))-texts[0])
	b.text = append(b.text, from.text[texts[0]:texts[len(texts)-1]]...)
	b.n++
}

// appendShifted appends the offsets, each increased by shift.
func appendShifted(to, offsets []int32, shift int32) []int32 {
	for _, o := range offsets {
		to = append(to, o+shift)
	}
	return to
}

// rowPlace says where a good row is.
type rowPlace struct {
	offset int64 // -1 in Parquet
	line   int32 // number of lines before it in the block
}

// addGood ends a row that was decoded; the caller then counts its line.
func (b *block) addGood(p *plan, offset int64) {
	b.n++
	if p.raw {
		b.places = append(b.places, rowPlace{offset: offset, line: int32(b.lines)})
	}
	if p.keepBad {
		b.blanks = append(b.blanks, false)
	}
}

// endBad removes what a decoder wrote of a row that turned out bad. Where bad rows
// are kept, it puts a row in its place that has only the texts of the pass-through
// columns, if the decoder has reached all of them. The caller calls addBad first.
func (b *block) endBad(p *plan) {
	ends, text := b.textEnds, b.text
	b.rollback(p)
	if !p.keepBad {
		return
	}
	b.labels = append(b.labels, float32(math.NaN()))
	if p.weightColumn != "" {
		b.weights = append(b.weights, 1)
	}
	at := len(b.dense)
	for i := range p.dense {
		b.dense = append(b.dense, p.dense[i].missing)
	}
	p.addIndicators(b, at)
	for range p.fields {
		b.offsets = append(b.offsets, int32(len(b.keys)))
	}
	if p.groupColumn != "" {
		b.addGroup(nil)
	}
	for range p.stats {
		b.stats = append(b.stats, math.NaN())
	}
	if len(ends) == len(b.textEnds)+len(p.pass) {
		b.textEnds, b.text = ends, text
	} else {
		for range p.pass {
			b.addText(nil)
		}
	}
	b.blanks = append(b.blanks, true)
	b.n++
}

func newBlock() *block {
	return &block{offsets: make([]int32, 1, 1024), textEnds: make([]int32, 1, 16)}
}

// reset empties the block and keeps its memory.
func (b *block) reset(file *inputFile) {
	b.file = file
	b.n = 0
	b.labels, b.weights, b.dense = b.labels[:0], b.weights[:0], b.dense[:0]
	b.offsets, b.keys, b.bagWeights = b.offsets[:1], b.keys[:0], b.bagWeights[:0]
	b.groups, b.stats = b.groups[:0], b.stats[:0]
	b.textEnds, b.text, b.places, b.blanks = b.textEnds[:1], b.text[:0], b.places[:0], b.blanks[:0]
	b.bad.Reset()
	b.lines, b.stored, b.textEnd, b.lost = 0, 0, 0, nil
	b.head, b.headOpen, b.open = -1, false, false
}

// bytes is roughly how much memory the rows take.
func (b *block) bytes() int {
	return 4*(len(b.labels)+len(b.weights)+len(b.dense)+len(b.offsets)+len(b.bagWeights)+len(b.textEnds)) +
		8*(len(b.keys)+len(b.groups)+len(b.stats)+2*len(b.places)) + len(b.text) + 32*len(b.bad.Entries)
}

// reserve makes room for so many rows with one value in each cell, so that the columns need not
// grow, by copies, while they are filled.
func (b *block) reserve(p *plan, rows int) {
	b.labels = slices.Grow(b.labels, rows)
	b.dense = slices.Grow(b.dense, rows*p.denseWidth())
	b.offsets = slices.Grow(b.offsets, rows*len(p.fields))
	b.keys = slices.Grow(b.keys, rows*len(p.fields))
}

// reservedBytes is what reserve takes for a row.
func (p *plan) reservedBytes() int { return 4*(1+p.denseWidth()+len(p.fields)) + 8*len(p.fields) }

// rollback removes what a decoder wrote of a row that turned out bad.
func (b *block) rollback(p *plan) {
	b.labels = b.labels[:b.n]
	if p.weightColumn != "" {
		b.weights = b.weights[:b.n]
	}
	b.dense = b.dense[:b.n*p.denseWidth()]
	b.offsets = b.offsets[:b.n*len(p.fields)+1]
	keys := int(b.offsets[len(b.offsets)-1])
	b.keys = b.keys[:keys]
	if p.weightedBags {
		b.bagWeights = b.bagWeights[:keys]
	}
	if p.groupColumn != "" {
		b.groups = b.groups[:b.n]
	}
	b.stats = b.stats[:b.n*len(p.stats)]
	b.textEnds = b.textEnds[:b.n*len(p.pass)+1]
	b.text = b.text[:b.textEnds[len(b.textEnds)-1]]
}

// addBad records a bad row.
func (b *block) addBad(f faults.Fault, row []byte, offset int64, o *Options) {
	b.bad.Add(faults.Entry{At: int32(b.n), Line: int32(b.lines), Offset: offset}, f, row, o.QuarantineRows, o.HideCells)
}
