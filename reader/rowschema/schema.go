package rowschema

import (
	"aibox/reader/internal/hashes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Role is what a column is for.
type Role uint8

// The roles. A file still has the columns that are ignored; in files with a header,
// columns that the schema does not mention are ignored too.
const (
	RoleIgnore Role = iota
	RoleLabel
	RoleDense
	RoleSparse
	RoleWeight // of the example; an empty cell is 1
)

var roleNames = [...]string{"ignore", "label", "dense", "sparse", "weight"}

// String returns the name that ParseRole takes.
func (r Role) String() string {
	return nameOf(r, "Role", roleNames[:])
}

// ParseRole returns the role of that name: label, dense, sparse, weight, ignore.
func ParseRole(name string) (Role, error) {
	return byName[Role](name, "role", roleNames[:])
}

// Column is one column of the input.
type Column struct {
	Name string
	Role Role

	// Missing is the feature of a dense column where the cell is empty (null, or
	// absent in LibSVM and LibFFM). Transforms do not apply to it, so the default 0
	// is the mean of a standardized column. A bucketized column has no feature there.
	Missing float32
	// Indicator gives a dense column a second feature, IndicatorName: 1 where the cell is
	// empty, else 0. A bucketized column, which has no feature there anyway, ignores it.
	Indicator bool
	// Transforms of a dense column, in order. Bucketize can only be the last.
	Transforms []Transform

	// Separator splits a sparse cell into several values; "" means one value.
	// Empty values are ignored, so an empty cell is an empty bag.
	Separator string
	// WeightSeparator, where it occurs in a sparse value, precedes the value's
	// weight: "sports:0.5". Without it the weight is 1.
	WeightSeparator string
	// Space is the embedding space of a sparse (or bucketized) column; "" means
	// the column's own name. Columns that share a space share rows.
	Space string

	// IndexRange holds the first and last feature index of this column in
	// LibSVM; for a dense column they are equal.
	IndexRange    [2]int64
	HasIndexRange bool
	// FieldNumber is this column's field in LibFFM.
	FieldNumber    int
	HasFieldNumber bool

	// Stored says how a Parquet file that is written stores the column; the values of
	// a list are then separated as reader.Options.KeepLists says, not by Separator.
	Stored Stored
}

// Bucketized reports whether a dense column yields a sparse feature.
func (c *Column) Bucketized() bool {
	n := len(c.Transforms)
	return c.Role == RoleDense && n > 0 && c.Transforms[n-1].Kind == TransformBucketize
}

// Seed is the seed of the keys in the column's embedding space.
func (c *Column) Seed() uint64 { return hashes.Space(cmp.Or(c.Space, c.Name)) }

// Quoting says what quotation marks mean in csv and tsv.
type Quoting uint8

// The ways of quoting.
const (
	QuotingDefault Quoting = iota // the format's default: RFC 4180 for csv, none for tsv
	QuotingRFC4180                // a cell that begins with a quote ends with one
	QuotingNone                   // a quote is an ordinary character
)

var quotingNames = [...]string{"", "rfc4180", "none"}

// ParseQuoting returns the quoting of that name: rfc4180, none, or "" for the
// format's default.
func ParseQuoting(name string) (Quoting, error) {
	for i, n := range quotingNames {
		if n == name {
			return Quoting(i), nil
		}
	}
	return 0, fmt.Errorf("reader: unknown quoting %q; known are %q", name, quotingNames[1:])
}

// HiveNull is how Hive's text files write a null.
const HiveNull = `\N`

// Schema says how to read the rows of a file.
type Schema struct {
	Format    Format
	Header    bool // csv, tsv: the first line of each file names the columns
	Delimiter byte // csv, tsv; 0: comma for csv, tab for tsv
	Quoting   Quoting
	// NullValues are cells of csv and tsv that mean a missing value, as an empty cell
	// always does; nil: none for csv, \N for tsv. If a sparse cell has several
	// values, each of them can be a null value.
	NullValues []string
	// Columns are in the order of the file. With a header, and in Parquet, they are
	// found by name, and their order is only that of the features. Criteo without
	// columns has those of CriteoSchema; LibSVM without columns has one sparse column
	// "features" that holds every index with its value as weight.
	Columns []Column
	Label   LabelRule
}

// CriteoSchema is the schema of the Criteo click logs: label, 13 integers I1 to
// I13 under log1p, 26 categorical columns C1 to C26.
func CriteoSchema() Schema {
	columns := make([]Column, 0, 40)
	columns = append(columns, Column{Name: "label", Role: RoleLabel})
	for i := 1; i <= 13; i++ {
		columns = append(columns, Column{
			Name: "I" + strconv.Itoa(i), Role: RoleDense, Transforms: []Transform{{Kind: TransformLog1p}},
		})
	}
	for i := 1; i <= 26; i++ {
		columns = append(columns, Column{Name: "C" + strconv.Itoa(i), Role: RoleSparse})
	}
	return Schema{Format: FormatCriteo, Columns: columns}
}

// LibSVMColumn is the name of the only sparse column of LibSVM data without a
// schema.
const LibSVMColumn = "features"

// WithDefaults fills in what the format implies. Slices are shared.
func (s *Schema) WithDefaults() Schema {
	d := *s
	d.Header = d.Header && d.Format.Separated()
	switch d.Format {
	case FormatCriteo:
		d.Delimiter = '\t'
		if len(d.Columns) == 0 {
			d.Columns = CriteoSchema().Columns
		}
	case FormatCSV:
		d.Delimiter = cmp.Or(d.Delimiter, ',')
		d.Quoting = cmp.Or(d.Quoting, QuotingRFC4180)
	case FormatTSV:
		d.Delimiter = cmp.Or(d.Delimiter, '\t')
		d.Quoting = cmp.Or(d.Quoting, QuotingNone)
		if d.NullValues == nil {
			d.NullValues = []string{HiveNull}
		}
	case FormatLibSVM:
		if !slices.ContainsFunc(d.Columns, func(c Column) bool { return c.Role == RoleSparse || c.Role == RoleDense }) {
			d.Columns = append(slices.Clone(d.Columns), Column{
				Name: LibSVMColumn, Role: RoleSparse, IndexRange: [2]int64{0, 1<<63 - 1}, HasIndexRange: true,
			})
		}
	}
	return d
}

// Fields returns the names of the sparse fields in the order of reader.Batch.Offsets:
// the sparse columns in order, then the bucketized dense columns in order.
func (s *Schema) Fields() []string {
	var names []string
	d := s.WithDefaults()
	for i := range d.Columns {
		if d.Columns[i].Role == RoleSparse {
			names = append(names, d.Columns[i].Name)
		}
	}
	for i := range d.Columns {
		if d.Columns[i].Bucketized() {
			names = append(names, d.Columns[i].Name)
		}
	}
	return names
}

// DenseNames returns the names of the dense features in the order of
// reader.Batch.Dense: the dense columns that are not bucketized, then the indicators of those
// that have one.
func (s *Schema) DenseNames() []string {
	var names, indicators []string
	d := s.WithDefaults()
	for i := range d.Columns {
		if c := &d.Columns[i]; c.Role == RoleDense && !c.Bucketized() {
			names = append(names, c.Name)
			if c.Indicator {
				indicators = append(indicators, IndicatorName(c.Name))
			}
		}
	}
	return append(names, indicators...)
}

// IndicatorName is the name of the feature that says where a dense column is empty.
func IndicatorName(column string) string { return column + ".missing" }

// ColumnIndex returns the index of the column of that name, or -1. To look up many, use
// ColumnIndices.
func (s *Schema) ColumnIndex(name string) int {
	for i := range s.Columns { // without copies of columns
		if s.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// ColumnIndices returns the indices of all columns by name; if a name occurs twice, that of the
// first.
func (s *Schema) ColumnIndices() map[string]int {
	indices := make(map[string]int, len(s.Columns))
	for i := range s.Columns {
		if _, twice := indices[s.Columns[i].Name]; !twice {
			indices[s.Columns[i].Name] = i
		}
	}
	return indices
}

// LabelColumn is the column that the label comes from, "" where there is none.
// LibSVM and LibFFM need no such column: the label is a line's first token.
func (s *Schema) LabelColumn() string {
	if s.Label.Column != "" {
		return s.Label.Column
	}
	if i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Role == RoleLabel }); i >= 0 {
		return s.Columns[i].Name
	}
	if s.Format.Indexed() {
		return "label"
	}
	return ""
}

// ColumnNames are the names of the columns that rows have; LibSVM and LibFFM
// have a label without naming it.
func (s *Schema) ColumnNames() []string {
	var names []string
	if label := s.LabelColumn(); label != "" && s.ColumnIndex(label) < 0 && s.Format.Indexed() {
		names = append(names, label)
	}
	for i := range s.Columns {
		names = append(names, s.Columns[i].Name)
	}
	return names
}
