package examples

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
	"aibox/reader/rowschema"
)

// CellMap says in which cell of a line each of a plan's columns is. Indices start at 0; -1 stands
// for a column that the file lacks, which is allowed only for the label, if labels are not needed.
type CellMap struct {
	cells int      // per line
	names []string // of the cells, for people
	// partition holds the cells whose values are in the names of the file's
	// directories; they follow those of the line.
	partition [][]byte
	used      []bool // by cell: something is taken from it
	planned[int]
}

// MapCells finds the plan's columns among those of the file's header, or of the schema where header is nil,
// or else among those that the file's directories give.
func (p *Plan) MapCells(uri string, header []string) (*CellMap, error) {
	names, given := header, PartitionsOf(uri)
	if !p.Schema.Format.Separated() {
		given = nil // the columns of criteo are always the same
	}
	if !p.Schema.Header {
		for i := range p.Schema.Columns {
			name := p.Schema.Columns[i].Name
			if !slices.ContainsFunc(given, func(g partition) bool { return g.Name == name }) {
				names = append(names, name)
			}
		}
	}
	m, missing := p.cellsOf(names, given)
	switch err := p.noOthers(header); {
	case len(missing) == 0 && err != nil:
		return nil, fmt.Errorf("%s: %w", uri, err)
	case len(missing) == 0:
		return m, nil
	case !p.Schema.Header:
		return nil, p.noColumns(missing, fmt.Errorf("schema: there is no column %s; the columns are %s%s",
			quoteSome(missing, maxNamed), quoteSome(names, maxListed), meantColumns(missing, names)))
	}
	return nil, p.noColumns(missing, fmt.Errorf("%s: %s", uri, p.explainMissing(missing, names)))
}

// cellsOf finds the plan's columns among the cells with these names. missing lists the columns that were
// not found, in the order of the schema.
func (p *Plan) cellsOf(names []string, given []partition) (m *CellMap, missing []string) {
	m = &CellMap{cells: len(names), names: slices.Clone(names)}
	for _, g := range given {
		m.names = append(m.names, g.Name)
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
func (m *CellMap) markUsed(p *Plan) {
	m.used = make([]bool, len(m.names))
	used := m.planned
	if p.Raw {
		used.label = -1 // at most the label's text is used, which the pass-through columns mark
	}
	for _, i := range used.all() {
		if i >= 0 {
			m.used[i] = true
		}
	}
}

// MayLackLabel reports whether lines of files with these cells may lack the label: this is so if no
// label is needed and no header names the columns.
func (p *Plan) MayLackLabel(m *CellMap) bool {
	return p.keepUnlabelled && !p.Schema.Header && m.label >= 0 && m.label < m.cells
}

// LacksOne says whether a line has one cell less than m.
func (p *Plan) LacksOne(m *CellMap, line []byte) bool {
	cells, _ := p.Split(m.cells+1).Split(line, m.cells+1)
	return len(cells) == m.cells-1
}

// WithoutLabel is the map of a file whose lines lack the cell of the label.
func (m *CellMap) WithoutLabel(p *Plan) *CellMap {
	shift := func(i int) int {
		switch {
		case i == m.label:
			return -1
		case i > m.label:
			return i - 1
		}
		return i
	}
	short := &CellMap{
		cells: m.cells - 1, names: slices.Delete(slices.Clone(m.names), m.label, m.label+1), partition: m.partition, planned: mapped(&m.planned, shift),
	}
	short.markUsed(p)
	return short
}

// delimited decodes lines of cells: Criteo, CSV and TSV.
type delimited struct {
	p         *Plan
	m         *CellMap
	split     *rowtext.Cells
	nulls     [][]byte // cells that are missing values
	partition [][]byte // cells that the file's directories give, behind those of the line
}

// Split returns a splitter of lines into cells, whose slice has room for the given number of cells.
func (p *Plan) Split(cells int) *rowtext.Cells {
	return rowtext.NewCells(p.Schema.Delimiter, p.Schema.Quoting == rowschema.QuotingRFC4180, cells)
}

func newDelimited(p *Plan, m *CellMap) *delimited {
	d := &delimited{
		p: p, m: m, split: p.Split(m.cells + 1 + len(m.partition)), partition: m.partition,
	}
	for _, null := range p.Schema.NullValues {
		if null != "" {
			d.nulls = append(d.nulls, []byte(null))
		}
	}
	return d
}

// Decode appends the line's example to the list; if it returns a fault, the caller
// removes what was appended.
func (d *delimited) Decode(line []byte, l *List) faults.Fault {
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
		if f = d.notText(line, cells, m); f.Reason != faults.None && !p.KeepBad {
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
	case p.Raw:
		l.Labels = append(l.Labels, 0)
	case m.label >= 0:
		f = p.addLabel(l, cells[m.label])
	default:
		f = p.addNoLabel(l)
	}
	if f.Reason == faults.None && m.weight >= 0 {
		f = p.addWeight(l, cells[m.weight])
	}
	denseAt := len(l.Dense)
	for i := 0; i < len(p.dense) && f.Reason == faults.None; i++ {
		f = p.dense[i].addDense(l, cells[m.dense[i]])
	}
	if f.Reason == faults.None {
		p.addIndicators(l, denseAt)
	}
	for i := 0; i < len(p.fields) && f.Reason == faults.None; i++ {
		f = p.fields[i].addField(p, l, cells[m.fields[i]])
	}
	for i := 0; i < len(p.Stats) && f.Reason == faults.None; i++ {
		f = p.Stats[i].addStat(l, cells[m.stats[i]])
	}
	if f.Reason != faults.None {
		if p.KeepBad {
			l.addTexts(cells, m.pass)
		}
		return f
	}
	if m.group >= 0 {
		l.addGroup(cells[m.group])
	} else if p.Grouped() {
		l.addGroup(nil) // grouped by a label that is not there
	}
	l.addTexts(cells, m.pass)
	return faults.Fault{}
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
func (d *delimited) notText(line []byte, cells [][]byte, m *CellMap) faults.Fault {
	start := 0 // of the cell in the line
	for i, cell := range cells {
		if m.used[i] && !utf8.Valid(cell) {
			at := rowtext.InvalidAt(cell)
			f := faults.Fault{Reason: faults.ReasonUTF8, Column: m.names[i], Cell: cell[at:], At: start + at + 1}
			if d.p.Schema.Quoting == rowschema.QuotingRFC4180 && bytes.IndexByte(line, '"') >= 0 {
				f.At = bytes.Index(line, cell[:at+1]) + at + 1 // it may be 0 if the cell has doubled quotes before that byte
			}
			return f
		}
		start += len(cell) + 1
	}
	return faults.Fault{}
}
