package reader

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
	"aibox/reader/rowschema"
)

// cellMap says in which cell of a line a plan's columns are found. Indices count
// from 0; -1 stands for a column that the file does not have, which is allowed for
// the label alone, where labels are not needed.
type cellMap struct {
	cells int      // per line
	names []string // of the cells, for people
	// partition holds the cells whose values are in the names of the file's
	// directories; they follow those of the line.
	partition [][]byte
	used      []bool // by cell: something is taken from it
	planned[int]
}

// mapCells finds the plan's columns among the names of the file's columns, or else
// among those that its directories give. missing lists the columns that were not
// found, in the order of the schema.
func (p *plan) mapCells(names []string, given []partition) (m *cellMap, missing []string) {
	m = &cellMap{cells: len(names), names: slices.Clone(names)}
	for _, g := range given {
		m.names = append(m.names, g.name)
		m.partition = append(m.partition, g.value)
	}
	where := make(map[string]int, len(m.names))
	for i, name := range slices.Backward(m.names) { // of several cells with one name, the first counts
		where[name] = i
	}
	reported := map[string]bool{}
	w := p.wanted()
	m.planned = mapped(&w, func(w wanted) int {
		if i, found := where[w.name]; found && w.name != "" {
			return i
		}
		if w.name != "" && !w.optional && !reported[w.name] {
			reported[w.name] = true
			missing = append(missing, w.name)
		}
		return -1
	})
	m.markUsed(p)
	return m, missing
}

// markUsed notes which cells the plan uses.
func (m *cellMap) markUsed(p *plan) {
	m.used = make([]bool, len(m.names))
	used := m.planned
	if p.raw {
		used.label = -1 // at most the label's text is used, which the pass-through columns mark
	}
	for _, i := range used.all() {
		if i >= 0 {
			m.used[i] = true
		}
	}
}

// withoutLabel is the map of a file whose lines lack the cell of the label.
func (m *cellMap) withoutLabel(p *plan) *cellMap {
	shift := func(i int) int {
		switch {
		case i == m.label:
			return -1
		case i > m.label:
			return i - 1
		}
		return i
	}
	short := &cellMap{
		cells: m.cells - 1, names: slices.Delete(slices.Clone(m.names), m.label, m.label+1), partition: m.partition, planned: mapped(&m.planned, shift),
	}
	short.markUsed(p)
	return short
}

// delimited decodes lines of cells: Criteo, CSV and TSV.
type delimited struct {
	p         *plan
	m         *cellMap
	split     *rowtext.Cells
	nulls     [][]byte // cells that are missing values
	partition [][]byte // cells that the file's directories give, behind those of the line
}

// split cuts lines into cells; its slice has room for so many.
func (p *plan) split(cells int) *rowtext.Cells {
	return rowtext.NewCells(p.schema.Delimiter, p.schema.Quoting == rowschema.QuotingRFC4180, cells)
}

func newDelimited(p *plan, m *cellMap) *delimited {
	d := &delimited{
		p: p, m: m, split: p.split(m.cells + 1 + len(m.partition)), partition: m.partition,
	}
	for _, null := range p.schema.NullValues {
		if null != "" {
			d.nulls = append(d.nulls, []byte(null))
		}
	}
	return d
}

// decode appends the line's example to the block; if it returns a fault, the caller
// removes what was appended.
func (d *delimited) decode(line []byte, b *block) faults.Fault {
	m := d.m
	cells, ok := d.split.Split(line, m.cells+1)
	if !ok {
		return faults.Fault{Reason: faults.ReasonQuote}
	}
	if len(cells) != m.cells {
		return faults.Fault{Reason: faults.ReasonColumns, Found: len(cells), Want: m.cells}
	}
	p := d.p
	var f faults.Fault
	if !utf8.Valid(line) {
		if f = d.notText(line, cells, m); f.Reason != faults.None && !p.keepBad {
			return f
		}
		clearInvalid(cells)
	}
	for _, null := range d.nulls {
		if bytes.Contains(line, null) {
			clearNulls(cells, null)
		}
	}
	cells = append(cells, d.partition...)
	switch {
	case f.Reason != faults.None:
	case p.raw:
		b.labels = append(b.labels, 0)
	case m.label >= 0:
		f = p.addLabel(b, cells[m.label])
	default:
		f = p.addNoLabel(b)
	}
	if f.Reason == faults.None && m.weight >= 0 {
		f = p.addWeight(b, cells[m.weight])
	}
	denseAt := len(b.dense)
	for i := 0; i < len(p.dense) && f.Reason == faults.None; i++ {
		f = p.dense[i].addDense(b, cells[m.dense[i]])
	}
	if f.Reason == faults.None {
		p.addIndicators(b, denseAt)
	}
	for i := 0; i < len(p.fields) && f.Reason == faults.None; i++ {
		f = p.fields[i].addField(p, b, cells[m.fields[i]])
	}
	for i := 0; i < len(p.stats) && f.Reason == faults.None; i++ {
		f = p.stats[i].addStat(b, cells[m.stats[i]])
	}
	if f.Reason != faults.None {
		if p.keepBad {
			b.addTexts(cells, m.pass)
		}
		return f
	}
	if m.group >= 0 {
		b.addGroup(cells[m.group])
	} else if p.groupColumn != "" {
		b.addGroup(nil) // grouped by a label that is not there
	}
	b.addTexts(cells, m.pass)
	return faults.Fault{}
}

// addTexts appends the texts of the columns passed through.
func (b *block) addTexts(cells [][]byte, pass []int) {
	for _, i := range pass {
		if i >= 0 {
			b.addText(cells[i])
		} else {
			b.addText(nil)
		}
	}
}

// clearNulls empties the cells that equal the null value when spaces around it are
// ignored.
func clearNulls(cells [][]byte, null []byte) {
	for i, cell := range cells {
		if len(cell) >= len(null) && (bytes.Equal(cell, null) || bytes.Equal(number.Trim(cell), null)) {
			cells[i] = nil
		}
	}
}

// clearInvalid empties the cells that are not UTF-8.
func clearInvalid(cells [][]byte) {
	for i, cell := range cells {
		if !utf8.Valid(cell) {
			cells[i] = nil
		}
	}
}

// notText says which of the cells that are needed is not UTF-8; the other cells are
// not checked.
func (d *delimited) notText(line []byte, cells [][]byte, m *cellMap) faults.Fault {
	start := 0 // of the cell in the line
	for i, cell := range cells {
		if m.used[i] && !utf8.Valid(cell) {
			at := rowtext.InvalidAt(cell)
			f := faults.Fault{Reason: faults.ReasonUTF8, Column: m.names[i], Cell: cell[at:], At: start + at + 1}
			if d.p.schema.Quoting == rowschema.QuotingRFC4180 && bytes.IndexByte(line, '"') >= 0 {
				f.At = bytes.Index(line, cell[:at+1]) + at + 1 // it may be 0 if the cell has doubled quotes before that byte
			}
			return f
		}
		start += len(cell) + 1
	}
	return faults.Fault{}
}
