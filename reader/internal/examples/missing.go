package examples

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"aibox/internal/nearest"
	"aibox/reader/internal/faults"
	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
)

const (
	maxNamed  = 5  // how many missing columns an error names at most
	maxListed = 12 // how many of the columns that the file has an error lists at most
)

// Needs says whether the plan uses the column.
func (p *Plan) Needs(name string) bool {
	return name == p.LabelColumn || name == p.weightColumn || name == p.groupColumn || slices.Contains(p.pass, name) ||
		slices.ContainsFunc(p.dense, func(c denseColumn) bool { return c.name == name }) ||
		slices.ContainsFunc(p.fields, func(c fieldColumn) bool { return c.name == name })
}

// explainMissing says which columns the header lacks, what it has, and what may be
// the reason.
func (p *Plan) explainMissing(missing, names []string) string {
	text := fmt.Sprintf("the header has no column %s; its columns are %s",
		quoteSome(p.schemaOrder(missing), maxNamed), quoteSome(names, maxListed))
	if len(names) == 1 {
		for _, other := range []byte(",;\t|") {
			if other != p.Schema.Delimiter && strings.IndexByte(names[0], other) >= 0 {
				return fmt.Sprintf("%s. The header is one cell: is the delimiter %q?", text, other)
			}
		}
	}
	if !slices.ContainsFunc(names, p.Needs) && slices.ContainsFunc(names, isNumber) {
		return text + ". The first line looks like data: if the files have no header, set header: false and list every column in order"
	}
	return text + meantColumns(missing, names)
}

// meantColumns returns the end of a message about missing columns: it suggests the column that one
// of them probably stands for; "" if no name is similar.
func meantColumns(missing, names []string) string {
	for _, name := range missing {
		near := nearest.Name(name, names)
		if near == "" {
			continue
		}
		text := fmt.Sprintf(". Did you mean %s instead of %s?", rowtext.Shown([]byte(near)), rowtext.Shown([]byte(name)))
		if nearest.Plain(near) == nearest.Plain(name) {
			text += " Names are compared exactly, including upper and lower case"
		}
		return text
	}
	return ""
}

// noColumns returns err, which is about columns that the input lacks, with its kind.
// If a missing column is one that the caller asks for in addition to the schema, the
// options are at fault, and not the input.
func (p *Plan) noColumns(missing []string, err error) error {
	if p.asked && slices.ContainsFunc(missing, func(name string) bool { return slices.Contains(p.pass, name) }) {
		return &faults.OptionsError{Err: err}
	}
	return err
}

// noOthers refuses columns of a file that the schema lacks, if the plan asks for that.
func (p *Plan) noOthers(names []string) error {
	if !p.whole {
		return nil
	}
	known := p.Schema.ColumnIndices()
	for _, name := range names {
		if _, listed := known[name]; !listed {
			return fmt.Errorf("column %s is not in the preceding files, whose columns are %s: choose columns with --columns (those of a side table with --add)",
				rowtext.Shown([]byte(name)), quoteSome(p.Schema.ColumnNames(), maxListed))
		}
	}
	return nil
}

// schemaOrder sorts names as the schema lists them, with other names after them.
func (p *Plan) schemaOrder(names []string) []string {
	indices := p.Schema.ColumnIndices()
	place := func(name string) int {
		if i, listed := indices[name]; listed {
			return i
		}
		return len(p.Schema.Columns)
	}
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return sorted
}

func isNumber(cell string) bool {
	_, ok := number.Float64(number.Trim([]byte(cell)))
	return ok
}

// quoteSome lists names for an error, at most as many as most says.
func quoteSome(names []string, most int) string {
	var quoted []string
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, rowtext.Shown([]byte(name)))
	}
	text := strings.Join(quoted, ", ")
	if rest := len(names) - most; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// quoteAll lists names for an error.
func quoteAll(names []string) string { return quoteSome(names, len(names)) }
