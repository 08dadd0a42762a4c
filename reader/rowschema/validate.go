package rowschema

import (
	"errors"
	"fmt"

	"aibox/reader/number"
)

// Validate lists everything that is wrong with the schema in itself.
func (s *Schema) Validate() error {
	faults := s.check()
	if len(s.Columns) > 0 && len(s.Fields()) == 0 && len(s.DenseNames()) == 0 {
		faults = append(faults, errors.New("schema: no column is dense or sparse: there is nothing to learn from"))
	}
	return errors.Join(faults...)
}

// ValidateRows is Validate for a schema whose rows are only copied or written, and which therefore may
// lack features.
func (s *Schema) ValidateRows() error { return errors.Join(s.check()...) }

// check lists what is wrong with it.
func (s *Schema) check() []error {
	var faults []error
	report := func(format string, args ...any) { faults = append(faults, fmt.Errorf("schema: "+format, args...)) }
	d := s.WithDefaults()
	if int(d.Format) >= len(formatNames) {
		report("unknown format %v", d.Format)
	}
	if d.Format.Separated() && (d.Delimiter == '"' || d.Delimiter == '\n' || d.Delimiter == '\r' || d.Delimiter >= 0x80) {
		report("delimiter %q cannot be distinguished from the text", d.Delimiter)
	}
	if len(d.Columns) == 0 {
		report("%v needs columns", d.Format)
	}
	if err := d.Label.check(); err != nil {
		report("%w", err)
	}
	indices := d.ColumnIndices()
	labels, weights := 0, 0
	for i := range d.Columns {
		c := &d.Columns[i]
		if c.Name == "" {
			report("column %d has no name", i+1)
		} else if indices[c.Name] != i {
			report("column %q occurs twice", c.Name)
		}
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
		name := IndicatorName(c.Name)
		if _, taken := indices[name]; taken && c.Indicator && c.Role == RoleDense && !c.Bucketized() {
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
	if !number.Finite(float64(c.Missing)) {
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
	if !s.Format.Indexed() {
		return nil // all pairs of tens of thousands of columns take long
	}
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
