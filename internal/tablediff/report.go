package tablediff

import (
	"cmp"
	"slices"
)

// Report says how two tables differ.
type Report struct {
	// Total is the sum over all rows. Fields has a group for each of Options.Fields, in their
	// order, and a last one without a name for the rows of no known field; it is nil without
	// Options.Keys.
	Total  Group   `json:"total"`
	Fields []Group `json:"fields,omitempty"`
	// Moved are the rows that moved farthest, the farthest first.
	Moved []Row `json:"moved_most"`
	// Comparable is false if rows of the tables have different numbers of values, or
	// values of different meanings. Then none counts as moved.
	Comparable bool `json:"comparable"`
}

// Group sums up the rows of one field, or of all.
type Group struct {
	Field   string `json:"field"`
	Before  int64  `json:"rows_before"`
	After   int64  `json:"rows_after"`
	Added   int64  `json:"added"`   // rows only in the second table
	Dropped int64  `json:"dropped"` // rows only in the first table
	Moved   int64  `json:"moved"`   // rows in both whose values differ
	// MeanDistance and MaxDistance are over the rows that moved. The distance of a row is
	// the Euclidean distance between its values in the two tables.
	MeanDistance Float `json:"mean_distance"`
	MaxDistance  Float `json:"max_distance"`

	sum float64 // of distances
}

// add counts a row that is in the first table, in the second, or in both.
func (g *Group) add(e *entry) {
	g.Before += int64(e.in & inFrom)
	g.After += int64(e.in & inTo >> 1)
	switch {
	case e.in == inTo:
		g.Added++
	case e.in == inFrom:
		g.Dropped++
	case e.moved:
		g.Moved++
		g.sum += e.distance
		g.MaxDistance = max(g.MaxDistance, Float(e.distance))
		g.MeanDistance = Float(g.sum / float64(g.Moved))
	}
}

// Row is a row that is in both tables.
type Row struct {
	Key        uint64  `json:"key,string"`
	Field      string  `json:"field,omitempty"`
	Distance   Float   `json:"distance"`
	NormBefore Float   `json:"norm_before"` // Euclidean norm of its values
	NormAfter  Float   `json:"norm_after"`
	ShowBefore float32 `json:"show_before"` // decayed impressions
	ShowAfter  float32 `json:"show_after"`
	// Value is the value of the field that has this key, if it is known.
	Value string `json:"value,omitempty"`
}

// farthest holds at most n rows, those with the largest distances.
type farthest struct {
	n    int
	rows []Row
}

// add offers a row.
func (f *farthest) add(r *Row) {
	if f.n == 0 || len(f.rows) == f.n && compareRows(r, &f.rows[f.n-1]) > 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(f.rows, r, func(a Row, b *Row) int { return compareRows(&a, b) })
	f.rows = slices.Insert(f.rows, at, *r)
	f.rows = f.rows[:min(f.n, len(f.rows))]
}

// compareRows orders rows by distance, the farthest first, and equal ones by key.
func compareRows(a, b *Row) int {
	return cmp.Or(cmp.Compare(b.Distance, a.Distance), cmp.Compare(a.Key, b.Key))
}
