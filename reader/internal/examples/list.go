package examples

import (
	"math"
	"slices"

	"aibox/reader/internal/hashes"
)

// List holds decoded examples in columns.
//
// With D dense features (indicators are the last of them), F fields and P pass-through columns:
//
//	example      0          1                 N-1
//	Labels    [ y0       | y1       | ... |        ]  (N)
//	Dense     [ D values | D values | ... |        ]  (N*D)
//	Offsets   [ 0 | F ends | F ends | ... |        ]  (N*F+1), into Keys
//	TextEnds  [ 0 | P ends | P ends | ... |        ]  (N*P+1), into Text
type List struct {
	N          int
	Labels     []float32
	Weights    []float32 // (N) where the plan has a weight column, else empty
	Dense      []float32
	Offsets    []int32
	Keys       []uint64
	BagWeights []float32 // as long as Keys where the plan has weighted bags, else empty
	Groups     []uint64  // (N) where the plan has a group column, else empty
	Stats      []float64 // (N*S) inputs of the columns that Scan looks at; NaN: missing
	TextEnds   []int32
	Text       []byte
	Blanks     []bool // (N) where the plan keeps bad rows: which rows are such; else empty
}

// NewList returns an empty list.
func NewList() List {
	return List{Offsets: make([]int32, 1, 1024), TextEnds: make([]int32, 1, 16)}
}

// Empty empties the list and keeps its memory.
func (l *List) Empty() {
	l.N = 0
	l.Labels, l.Weights, l.Dense = l.Labels[:0], l.Weights[:0], l.Dense[:0]
	l.Offsets, l.Keys, l.BagWeights = l.Offsets[:1], l.Keys[:0], l.BagWeights[:0]
	l.Groups, l.Stats = l.Groups[:0], l.Stats[:0]
	l.TextEnds, l.Text, l.Blanks = l.TextEnds[:1], l.Text[:0], l.Blanks[:0]
}

// Memory is roughly how many bytes of memory the examples take.
func (l *List) Memory() int {
	return 4*(len(l.Labels)+len(l.Weights)+len(l.Dense)+len(l.Offsets)+len(l.BagWeights)+len(l.TextEnds)) +
		8*(len(l.Keys)+len(l.Groups)+len(l.Stats)) + len(l.Text)
}

// Reserve makes room for so many rows with one value in each cell, so that the columns need not
// grow, by copies, while they are filled.
func (l *List) Reserve(p *Plan, rows int) {
	l.Labels = slices.Grow(l.Labels, rows)
	l.Dense = slices.Grow(l.Dense, rows*p.DenseWidth())
	l.Offsets = slices.Grow(l.Offsets, rows*len(p.fields))
	l.Keys = slices.Grow(l.Keys, rows*len(p.fields))
}

// ReservedBytes is what Reserve takes for a row.
func (p *Plan) ReservedBytes() int { return 4*(1+p.DenseWidth()+len(p.fields)) + 8*len(p.fields) }

// Rollback removes what a decoder wrote of a row that it did not complete or that turned out bad.
func (l *List) Rollback(p *Plan) {
	l.Labels = l.Labels[:l.N]
	if p.weightColumn != "" {
		l.Weights = l.Weights[:l.N]
	}
	l.Dense = l.Dense[:l.N*p.DenseWidth()]
	l.Offsets = l.Offsets[:l.N*len(p.fields)+1]
	keys := int(l.Offsets[len(l.Offsets)-1])
	l.Keys = l.Keys[:keys]
	if p.weightedBags {
		l.BagWeights = l.BagWeights[:keys]
	}
	if p.Grouped() {
		l.Groups = l.Groups[:l.N]
	}
	l.Stats = l.Stats[:l.N*len(p.Stats)]
	l.TextEnds = l.TextEnds[:l.N*len(p.pass)+1]
	l.Text = l.Text[:l.TextEnds[len(l.TextEnds)-1]]
}

// EndGood ends a row that was decoded.
func (l *List) EndGood(p *Plan) {
	l.N++
	if p.KeepBad {
		l.Blanks = append(l.Blanks, false)
	}
}

// EndBad removes what a decoder wrote of a row that turned out bad. If bad rows are kept, it
// replaces the row by one that has only the texts of the pass-through columns, provided that the
// decoder reached all of them.
func (l *List) EndBad(p *Plan) {
	ends, text := l.TextEnds, l.Text
	l.Rollback(p)
	if !p.KeepBad {
		return
	}
	l.Labels = append(l.Labels, float32(math.NaN()))
	if p.weightColumn != "" {
		l.Weights = append(l.Weights, 1)
	}
	at := len(l.Dense)
	for i := range p.dense {
		l.Dense = append(l.Dense, p.dense[i].missing)
	}
	p.addIndicators(l, at)
	for range p.fields {
		l.Offsets = append(l.Offsets, int32(len(l.Keys)))
	}
	if p.Grouped() {
		l.addGroup(nil)
	}
	for range p.Stats {
		l.Stats = append(l.Stats, math.NaN())
	}
	if len(ends) == len(l.TextEnds)+len(p.pass) {
		l.TextEnds, l.Text = ends, text
	} else {
		for range p.pass {
			l.addText(nil)
		}
	}
	l.Blanks = append(l.Blanks, true)
	l.N++
}

// CopyRow appends example e of another list.
func (l *List) CopyRow(p *Plan, from *List, e int) {
	l.Labels = append(l.Labels, from.Labels[e])
	d := p.DenseWidth()
	l.Dense = append(l.Dense, from.Dense[e*d:(e+1)*d]...)
	if p.weightColumn != "" {
		l.Weights = append(l.Weights, from.Weights[e])
	}
	if p.Grouped() {
		l.Groups = append(l.Groups, from.Groups[e])
	}
	if p.KeepBad {
		l.Blanks = append(l.Blanks, from.Blanks[e])
	}
	fields := len(p.fields)
	offsets := from.Offsets[e*fields : (e+1)*fields+1]
	first, last := offsets[0], offsets[fields]
	l.Offsets = AppendShifted(l.Offsets, offsets[1:], int32(len(l.Keys))-first)
	l.Keys = append(l.Keys, from.Keys[first:last]...)
	if p.weightedBags {
		l.BagWeights = append(l.BagWeights, from.BagWeights[first:last]...)
	}
	texts := from.TextEnds[e*len(p.pass) : (e+1)*len(p.pass)+1]
	l.TextEnds = AppendShifted(l.TextEnds, texts[1:], int32(len(l.Text))-texts[0])
	l.Text = append(l.Text, from.Text[texts[0]:texts[len(texts)-1]]...)
	l.N++
}

// AppendShifted appends the offsets, each increased by shift.
func AppendShifted(to, offsets []int32, shift int32) []int32 {
	for _, o := range offsets {
		to = append(to, o+shift)
	}
	return to
}

// addGroup appends the hash of a cell of the group-by column.
func (l *List) addGroup(cell []byte) { l.Groups = append(l.Groups, hashes.In(groupSeed, cell)) }

// groupSeed keeps group hashes apart from feature keys.
var groupSeed = hashes.Space("\x00group")

// addText appends the raw text of a pass-through column.
func (l *List) addText(cell []byte) {
	l.Text = append(l.Text, cell...)
	l.TextEnds = append(l.TextEnds, int32(len(l.Text)))
}

// addTexts appends the texts of the columns passed through.
func (l *List) addTexts(cells [][]byte, pass []int) {
	for _, i := range pass {
		if i >= 0 {
			l.addText(cells[i])
		} else {
			l.addText(nil)
		}
	}
}
