package rowschema

import (
	"fmt"
	"strconv"
	"strings"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
	"aibox/reader/number"
)

// KeyOf returns the key of one value of a sparse field, as if the value were read
// from a row of the schema: value is the text between separators, without a weight;
// in LibSVM and LibFFM it is the feature's index; for a bucketized column it is a
// number. Standardize steps of the schema must have their mean and std. Errors are
// *OptionsError.
func (s *Schema) KeyOf(field, value string) (uint64, error) {
	d := s.WithDefaults()
	i := d.ColumnIndex(field)
	if i < 0 {
		return 0, faults.OptionsErrorf("no column %q; the sparse fields are %s", field, strings.Join(s.Fields(), ", "))
	}
	c := &d.Columns[i]
	switch {
	case c.Bucketized():
		x, ok := number.Float64(number.Trim([]byte(value)))
		if !ok {
			return 0, faults.OptionsErrorf("column %s: %q: %v", field, value, faults.ReasonNumber)
		} else if !number.Finite(x) {
			return 0, faults.OptionsErrorf("column %s: %q: %v", field, value, faults.ReasonNotFinite)
		}
		return BucketKey(c.Seed(), c.Transforms, x), nil
	case c.Role != RoleSparse:
		return 0, faults.OptionsErrorf("column %q is %v; the sparse fields are %s", field, c.Role, strings.Join(s.Fields(), ", "))
	case value == "":
		return 0, faults.OptionsErrorf("column %s: an empty cell has no key", field)
	case c.Separator != "" && strings.Contains(value, c.Separator):
		return 0, faults.OptionsErrorf("column %s: %q holds %q, which separates values: give one value", field, value, c.Separator)
	}
	if d.Format.Indexed() { // leading zeros are ignored, as when rows are read
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return 0, faults.OptionsErrorf("column %s: %q is not a feature index", field, value)
		}
		feature := int64(n)
		if c.HasIndexRange {
			if feature < c.IndexRange[0] || feature > c.IndexRange[1] {
				return 0, faults.OptionsErrorf("column %s: index %d is outside of its range, %d to %d", field, feature, c.IndexRange[0], c.IndexRange[1])
			}
			feature -= c.IndexRange[0]
		}
		value = fmt.Sprint(feature)
	}
	return hashes.In(c.Seed(), []byte(value)), nil
}
