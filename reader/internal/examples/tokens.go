package examples

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
	"aibox/reader/rowschema"
)

// tokens decodes lines of LibSVM and LibFFM:
//
//	label [qid:n] index:value index:value ...       # comment
//	label [qid:n] field:index:value ...             # comment
//
// A sparse column takes the tokens of its index range (LibFFM: of its field) in
// the order of the line. The feature is the index as decimal text, counted from
// the beginning of the range, so that columns of different ranges can share a
// space; the value is its weight in the bag. A dense column takes the value of
// its only index (field).
//
// A line that holds only a comment is skipped like an empty one. Tokens that belong
// to no column are ignored. A column without a token in a line is missing there.
type tokens struct {
	p        *Plan
	columns  []tokenColumn // by lo
	perToken int           // numbers before the value: 1, or 2 with fields

	// The following fields are about the line that is being decoded.
	features []tokenFeature
	counts   []int32 // per field: its features, then the next one's place
	texts    [][]byte
	label    []byte
	query    []byte
}

// tokenColumn is a column and the indices (fields) that it takes.
type tokenColumn struct {
	name   string
	lo, hi int64
	number bool  // a dense column
	dense  int   // into plan.dense, or -1
	field  int   // into plan.fields, or -1; of a dense column: that of its buckets
	stats  []int // into plan.stats
	pass   []int // into plan.pass
	list   string
	weight string
	value  []byte // of a dense column on this line; nil: missing
}

// tokenFeature is one feature of a sparse column on the line.
type tokenFeature struct {
	field  int32
	weight float32
	key    uint64
}

func newTokens(p *Plan) *tokens {
	d := &tokens{
		p: p, perToken: 1, counts: make([]int32, len(p.fields)+1), texts: make([][]byte, len(p.pass)),
	}
	if p.Schema.Format == rowschema.FormatLibFFM {
		d.perToken = 2
	}
	for i := range p.Schema.Columns {
		c := &p.Schema.Columns[i]
		t := tokenColumn{name: c.Name, lo: c.IndexRange[0], hi: c.IndexRange[1], number: c.Role == rowschema.RoleDense}
		given := c.HasIndexRange
		if p.Schema.Format == rowschema.FormatLibFFM {
			t.lo, t.hi, given = int64(c.FieldNumber), int64(c.FieldNumber), c.HasFieldNumber
		}
		if !given {
			continue
		}
		t.dense = slices.IndexFunc(p.dense, func(d denseColumn) bool { return d.name == c.Name })
		t.field = slices.IndexFunc(p.fields, func(f fieldColumn) bool { return f.name == c.Name })
		for j := range p.Stats {
			if p.Stats[j].Name == c.Name {
				t.stats = append(t.stats, j)
			}
		}
		for j := range p.pass {
			if p.pass[j] == c.Name {
				t.pass = append(t.pass, j)
			}
		}
		t.list, t.weight = c.ListSeparators()
		d.columns = append(d.columns, t)
	}
	slices.SortFunc(d.columns, func(a, b tokenColumn) int { return cmp.Compare(a.lo, b.lo) })
	return d
}

// CheckTokens reports columns of the plan that LibSVM or LibFFM cannot have.
func (p *Plan) CheckTokens() error {
	known := []string{p.LabelColumn, rowschema.QueryColumn}
	for i := range p.Schema.Columns {
		c := &p.Schema.Columns[i]
		if c.HasIndexRange || c.HasFieldNumber || c.Role == rowschema.RoleLabel {
			known = append(known, c.Name)
		}
	}
	for _, name := range append(slices.Clone(p.pass), p.groupColumn) {
		if name != "" && !slices.Contains(known, name) {
			return p.noColumns([]string{name}, fmt.Errorf("schema: no column %q; %v has %s%s", name, p.Schema.Format, quoteAll(known), meantColumns([]string{name}, known)))
		}
	}
	if p.Grouped() && p.groupColumn != rowschema.QueryColumn {
		return fmt.Errorf("schema: %v can only be grouped by %q, the query number, not by %q", p.Schema.Format, rowschema.QueryColumn, p.groupColumn)
	}
	if p.label.Column != "" && p.label.Column != "label" && !p.isLabelColumn(p.label.Column) {
		return fmt.Errorf("schema: the label of %v is each line's first token: name it \"label\", not %q", p.Schema.Format, p.label.Column)
	}
	return nil
}

func (p *Plan) isLabelColumn(name string) bool {
	i := p.Schema.ColumnIndex(name)
	return i >= 0 && p.Schema.Columns[i].Role == rowschema.RoleLabel
}

// Decode appends the line's example to the list.
func (d *tokens) Decode(line []byte, l *List) faults.Fault {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	if !utf8.Valid(line) {
		return faults.Fault{Reason: faults.ReasonUTF8, Cell: line[rowtext.InvalidAt(line):], At: rowtext.InvalidAt(line) + 1}
	}
	d.features, d.label, d.query = d.features[:0], nil, nil
	clear(d.counts)
	for i := range d.texts {
		d.texts[i] = d.texts[i][:0]
	}
	for i := range d.columns {
		d.columns[i].value = nil
	}
	for first := true; ; first = false {
		var token []byte
		token, line = cutToken(line)
		if token == nil {
			break
		}
		if first && bytes.IndexByte(token, ':') < 0 {
			d.label = token
			continue
		}
		if f := d.token(token); f.Reason != faults.None {
			return f
		}
	}
	return d.add(l)
}

// IsComment says whether the line holds a comment and no example.
func IsComment(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && line[0] == '#'
}

// cutToken cuts the first token off the line; nil if there is none.
func cutToken(line []byte) (token, rest []byte) {
	space := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
	i := 0
	for i < len(line) && space(line[i]) {
		i++
	}
	j := i
	for j < len(line) && !space(line[j]) {
		j++
	}
	if i == j {
		return nil, nil
	}
	return line[i:j], line[j:]
}

// token decodes one feature token.
func (d *tokens) token(token []byte) faults.Fault {
	bad := faults.Fault{Reason: faults.ReasonFeature, Cell: token}
	var numbers [2]int64
	rest := token
	var index []byte
	for i := range d.perToken {
		colon := bytes.IndexByte(rest, ':')
		if colon < 0 {
			return bad
		}
		index = rest[:colon]
		rest = rest[colon+1:]
		if i == 0 && string(index) == "qid" {
			if d.query != nil || len(rest) == 0 {
				return bad
			}
			d.query = rest
			return faults.Fault{}
		}
		n, ok := number.Int64(index)
		if !ok || n < 0 {
			return bad
		}
		numbers[i] = n
	}
	value, ok := number.Float32(rest)
	if !ok {
		return bad
	}
	if !number.Finite(float64(value)) {
		return faults.Fault{Reason: faults.ReasonNotFinite, Cell: token}
	}
	c := d.column(numbers[0])
	if c == nil {
		return faults.Fault{}
	}
	// An index with leading zeros or a sign is the same feature as one without.
	var canonical [20]byte
	switch feature := numbers[d.perToken-1]; {
	case d.perToken == 1 && c.lo > 0:
		index = strconv.AppendInt(canonical[:0], feature-c.lo, 10)
	case len(index) > 1 && (index[0] < '1' || index[0] > '9'):
		index = strconv.AppendInt(canonical[:0], feature, 10)
	}
	if c.number {
		if c.value != nil {
			return faults.Fault{Reason: faults.ReasonFeature, Column: c.name, Cell: token}
		}
		c.value = rest
	} else if c.field >= 0 {
		d.features = append(d.features, tokenFeature{int32(c.field), bagWeight(value), hashes.In(d.p.fields[c.field].seed, index)})
		d.counts[c.field+1]++
	}
	for _, i := range c.pass {
		t := d.texts[i]
		if !c.number {
			if len(t) > 0 {
				t = append(t, c.list...)
			}
			t = append(t, index...)
			if value != 1 {
				t = append(t, c.weight...)
			}
		}
		if c.number || value != 1 {
			t = append(t, rest...)
		}
		d.texts[i] = t
	}
	return faults.Fault{}
}

// column finds the column that takes index (or field) n.
func (d *tokens) column(n int64) *tokenColumn {
	i, found := slices.BinarySearchFunc(d.columns, n, func(c tokenColumn, n int64) int { return cmp.Compare(c.lo, n) })
	if !found {
		i--
	}
	if i < 0 || n > d.columns[i].hi {
		return nil
	}
	return &d.columns[i]
}

// add appends the labels and features that the line's tokens hold to the list.
func (d *tokens) add(l *List) faults.Fault {
	p := d.p
	var f faults.Fault
	switch {
	case p.Raw:
		l.Labels = append(l.Labels, 0)
	case d.label == nil:
		f = p.addNoLabel(l)
	default:
		f = p.addLabel(l, d.label)
	}
	if f.Reason != faults.None {
		return f
	}
	denseAt, statAt := len(l.Dense), len(l.Stats)
	for i := range p.dense {
		l.Dense = append(l.Dense, p.dense[i].missing)
	}
	for range p.Stats {
		l.Stats = append(l.Stats, math.NaN())
	}
	for i := range d.columns {
		c := &d.columns[i]
		if c.value == nil {
			continue
		}
		if f := d.addNumber(l, c, denseAt, statAt); f.Reason != faults.None {
			return f
		}
	}
	p.addIndicators(l, denseAt)
	d.addFeatures(l)
	if p.Grouped() {
		l.addGroup(d.query)
	}
	for i, name := range p.pass {
		switch {
		case len(d.texts[i]) > 0:
			l.addText(d.texts[i])
		case name == rowschema.QueryColumn:
			l.addText(d.query)
		case name == p.LabelColumn:
			l.addText(d.label)
		default:
			l.addText(nil)
		}
	}
	return faults.Fault{}
}

// addNumber writes the value of a dense column to all places of the list that use it.
func (d *tokens) addNumber(l *List, c *tokenColumn, denseAt, statAt int) faults.Fault {
	p := d.p
	// addDense and similar functions append to a column; the value is then moved to
	// its place.
	if c.dense >= 0 {
		if f := p.dense[c.dense].addDense(l, c.value); f.Reason != faults.None {
			return f
		}
		last := len(l.Dense) - 1
		l.Dense[denseAt+c.dense] = l.Dense[last]
		l.Dense = l.Dense[:last]
	}
	for _, i := range c.stats {
		if f := p.Stats[i].addStat(l, c.value); f.Reason != faults.None {
			return f
		}
		last := len(l.Stats) - 1
		l.Stats[statAt+i] = l.Stats[last]
		l.Stats = l.Stats[:last]
	}
	if c.field >= 0 {
		bucket, f := p.fields[c.field].bucket(c.value)
		if f.Reason != faults.None {
			return f
		}
		d.features = append(d.features, tokenFeature{int32(c.field), 1, bucket})
		d.counts[c.field+1]++
	}
	return faults.Fault{}
}

// addFeatures appends the line's features, field by field, each in the order of
// the line (a counting sort).
func (d *tokens) addFeatures(l *List) {
	at := len(l.Keys)
	n := len(d.features)
	l.Keys = slices.Grow(l.Keys, n)[:at+n]
	l.BagWeights = slices.Grow(l.BagWeights, n)[:at+n]
	for f := range d.p.fields {
		d.counts[f+1] += d.counts[f]
		l.Offsets = append(l.Offsets, int32(at)+d.counts[f+1])
	}
	for i := range d.features {
		t := &d.features[i]
		place := at + int(d.counts[t.field])
		d.counts[t.field]++
		l.Keys[place], l.BagWeights[place] = t.key, t.weight
	}
}
