package reader

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"aibox/reader/rowschema"
)

// TestKeyOf checks that the key of a value is the one that a row with that value gets when it is
// read.
func TestKeyOf(t *testing.T) {
	bucketized := Column{Name: "age", Role: RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformLog1p}, {Kind: rowschema.TransformBucketize, Boundaries: []float64{1, 2, 3}}}}
	table := Schema{Format: FormatTSV, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "u", Role: RoleSparse, Space: "id"},
		{Name: "tags", Role: RoleSparse, Separator: "|", WeightSeparator: ":"}, bucketized,
	}}
	svm := Schema{Format: FormatLibSVM, Columns: []Column{
		{Name: "user", Role: RoleSparse, IndexRange: [2]int64{100, 199}, HasIndexRange: true},
		{Name: "item", Role: RoleSparse, IndexRange: [2]int64{0, 99}, HasIndexRange: true},
	}}
	ffm := Schema{Format: FormatLibFFM, Columns: []Column{{Name: "a", Role: RoleSparse, FieldNumber: 0, HasFieldNumber: true}}}
	for _, c := range []struct {
		schema       Schema
		field, value string
		row          string
	}{
		{table, "u", "x y", "1\tx y\t\t\n"},
		{table, "tags", "q", "1\t\tq:0.5\t\n"},
		{table, "age", "9.5", "1\t\t\t9.5\n"},
		{table, "age", " 0 ", "1\t\t\t0\n"},
		{Schema{Format: FormatLibSVM}, rowschema.LibSVMColumn, "007", "1 7:1\n"},
		{svm, "user", "0123", "1 123:1\n"},
		{svm, "item", "42", "1 042:1\n"},
		{ffm, "a", "12", "1 0:12:1\n"},
	} {
		dir := t.TempDir()
		passes, _ := mustRead(t, testOptions(c.schema, write(t, dir, "x.txt", []byte(c.row))))
		key, err := c.schema.KeyOf(c.field, c.value)
		if err != nil || len(passes) != 1 || !slices.Equal(passes[0].Keys, []uint64{key}) {
			t.Errorf("%s=%q: key %x, %v; a row has %x", c.field, c.value, key, err, passes[0].Keys)
		}
	}
	for _, c := range []struct {
		schema             Schema
		field, value, want string
	}{
		{table, "v", "x", "the sparse fields are u, tags, age"},
		{table, "y", "1", "the sparse fields are"},
		{table, "u", "", "an empty cell has no key"},
		{table, "tags", "a|b", "give one value"},
		{table, "age", "old", "unparsable number"},
		{svm, "user", "99", "outside of its range"},
		{svm, "user", "x", "not a feature index"},
	} {
		_, err := c.schema.KeyOf(c.field, c.value)
		var bad *OptionsError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%q: %v, want %q", c.field, c.value, err, c.want)
		}
	}
}
