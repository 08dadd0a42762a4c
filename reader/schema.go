package reader

import (
	"cmp"
	"errors"
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
	// a list are then separated as Options.KeepLists says, not by Separator.
	Stored Stored
}

// bucketized says whether a dense column yields a sparse feature.
func (c *Column) bucketized() bool {
	n := len(c.Transforms)
	return c.Role == RoleDense && n > 0 && c.Transforms[n-1].Kind == TransformBucketize
}

// space is the name of the column's embedding space.
func (c *Column) space() string {
	if c.Space != "" {
		return c.Space
	}
	return c.Name
}

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

// withDefaults fills in what the format implies. Slices are shared.
func (s *Schema) withDefaults() Schema {
	d := *s
	d.Header = d.Header && d.Format.separated()
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

// Fields returns the names of the sparse fields in the order of Batch.Offsets:
// the sparse columns in order, then the bucketized dense columns in order.
func (s *Schema) Fields() []string {
	var names []string
	d := s.withDefaults()
	for i := range d.Columns {
		if d.Columns[i].Role == RoleSparse {
			names = append(names, d.Columns[i].Name)
		}
	}
	for i := range d.Columns {
		if d.Columns[i].bucketized() {
			names = append(names, d.Columns[i].Name)
		}
	}
	return names
}

// DenseNames returns the names of the dense features in the order of
// Batch.Dense: the dense columns that are not bucketized, then the indicators of those
// that have one.
func (s *Schema) DenseNames() []string {
	var names, indicators []string
	d := s.withDefaults()
	for i := range d.Columns {
		if c := &d.Columns[i]; c.Role == RoleDense && !c.bucketized() {
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

// column returns the index of the column of that name, or -1.
func (s *Schema) column(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// labelColumn is the column that the label comes from, "" where there is none.
// LibSVM and LibFFM need no such column: the label is a line's first token.
func (s *Schema) labelColumn() string {
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

// Validate lists everything that is wrong with the schema in itself.
func (s *Schema) Validate() error {
	faults := s.check()
	if len(s.Columns) > 0 && len(s.Fields()) == 0 && len(s.DenseNames()) == 0 {
		faults = append(faults, errors.New("schema: no column is dense or sparse: there is nothing to learn from"))
	}
	return errors.Join(faults...)
}

// check lists what is wrong with a schema whose rows are only written, and which
// therefore may lack features.
func (s *Schema) check() []error {
	var faults []error
	report := func(format string, args ...any) { faults = append(faults, fmt.Errorf("schema: "+format, args...)) }
	d := s.withDefaults()
	if int(d.Format) >= len(formatNames) {
		report("unknown format %v", d.Format)
	}
	if d.Format.separated() && (d.Delimiter == '"' || d.Delimiter == '\n' || d.Delimiter == '\r' || d.Delimiter >= 0x80) {
		report("delimiter %q cannot be distinguished from the text", d.Delimiter)
	}
	if len(d.Columns) == 0 {
		report("%v needs columns", d.Format)
	}
	if err := d.Label.check(); err != nil {
		report("%w", err)
	}
	seen := map[string]bool{}
	labels, weights := 0, 0
	for i := range d.Columns {
		c := &d.Columns[i]
		if c.Name == "" {
			report("column %d has no name", i+1)
		} else if seen[c.Name] {
			report("column %q occurs twice", c.Name)
		}
		seen[c.Name] = true
		switch c.Role {
		case RoleLabel:
			labels++
		case RoleWeight:
			weights++
		case RoleIgnore, RoleDense, RoleSparse:
		default:
			report("column %q: unknown role %v", c.Name, c.Role)
		}
		for _, err := range c.check(d.Format) {
			report("column %q: %w", c.Name, err)
		}
		if name := IndicatorName(c.Name); c.Indicator && c.Role == RoleDense && !c.bucketized() && s.column(name) >= 0 {
			report("column %q: there is a column %q, which is the name of the feature that says where this one is empty", c.Name, name)
		}
	}
	if labels > 1 {
		report("%d columns have the role label; only one can", labels)
	}
	if weights > 1 {
		report("%d columns have the role weight; only one can", weights)
	}
	if weights > 0 && d.Format.Indexed() {
		report("%v has no example weights", d.Format)
	}
	return append(faults, d.checkIndices()...)
}

// check lists what is wrong with one column.
func (c *Column) check(format Format) (faults []error) {
	if c.Role != RoleDense && len(c.Transforms) > 0 {
		faults = append(faults, fmt.Errorf("only dense columns have transforms, this one is %v", c.Role))
	}
	if c.Role != RoleSparse && (c.Separator != "" || c.WeightSeparator != "") {
		faults = append(faults, fmt.Errorf("only sparse columns have separators, this one is %v", c.Role))
	}
	if c.Separator != "" && c.Separator == c.WeightSeparator {
		faults = append(faults, fmt.Errorf("separator and weight separator are both %q", c.Separator))
	}
	if !finite(float64(c.Missing)) {
		faults = append(faults, fmt.Errorf("missing value %v is not finite", c.Missing))
	}
	unknown := 0
	for i := range c.Transforms {
		t := &c.Transforms[i]
		if err := t.check(); err != nil {
			faults = append(faults, err)
		}
		if t.Kind == TransformBucketize && i != len(c.Transforms)-1 {
			faults = append(faults, errors.New("bucketize must be the last transform"))
		}
		if t.Kind == TransformStandardize && !t.HasMeanStd {
			unknown++
		}
	}
	if unknown > 1 {
		faults = append(faults, errors.New("only one standardize can take its mean and std from the data"))
	}
	features := c.Role == RoleDense || c.Role == RoleSparse
	switch {
	case format == FormatLibSVM && features && !c.HasIndexRange:
		faults = append(faults, errors.New("libsvm needs the range of feature indices that belong to the column"))
	case format == FormatLibFFM && features && !c.HasFieldNumber:
		faults = append(faults, errors.New("libffm needs the column's field number"))
	case format == FormatLibSVM && c.HasIndexRange && (c.IndexRange[0] < 0 || c.IndexRange[0] > c.IndexRange[1]):
		faults = append(faults, fmt.Errorf("index range %v must ascend from 0 or more", c.IndexRange))
	case format == FormatLibSVM && c.Role == RoleDense && c.IndexRange[0] != c.IndexRange[1]:
		faults = append(faults, fmt.Errorf("a dense column takes one index, not the range %v", c.IndexRange))
	case format == FormatLibFFM && c.HasFieldNumber && c.FieldNumber < 0:
		faults = append(faults, fmt.Errorf("field number %d is negative", c.FieldNumber))
	}
	return faults
}

// checkIndices lists columns of LibSVM and LibFFM that claim the same tokens.
func (s *Schema) checkIndices() (faults []error) {
	for i := range s.Columns {
		a := &s.Columns[i]
		for j := range i {
			b := &s.Columns[j]
			overlap := s.Format == FormatLibSVM && a.HasIndexRange && b.HasIndexRange &&
				a.IndexRange[0] <= b.IndexRange[1] && b.IndexRange[0] <= a.IndexRange[1]
			same := s.Format == FormatLibFFM && a.HasFieldNumber && b.HasFieldNumber && a.FieldNumber == b.FieldNumber
			if overlap || same {
				faults = append(faults, fmt.Errorf("schema: columns %q and %q claim the same features", b.Name, a.Name))
			}
		}
	}
	return faults
}
