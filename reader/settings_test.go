package reader

import (
	"testing"

	"aibox/reader/rowschema"
)

// TestSchemaOfCursorsIsForEver holds what a cursor says of its schema fixed: a run goes on from what an
// earlier version of aibox has saved.
func TestSchemaOfCursorsIsForEver(t *testing.T) {
	rich := Schema{Format: FormatCSV, Header: true, NullValues: []string{"-"}, Label: LabelRule{Column: "y", Op: ">", Value: 0.5}, Columns: []Column{
		{Name: "y", Role: RoleLabel},
		{Name: "x", Role: RoleDense, Missing: 2, Indicator: true, Transforms: []rowschema.Transform{{Kind: rowschema.TransformStandardize, Mean: 1, Std: 2, HasMeanStd: true}}},
		{Name: "age", Role: RoleDense, Space: "ages", Transforms: []rowschema.Transform{{Kind: rowschema.TransformBucketize, Boundaries: []float64{10, 20}}}},
		{Name: "tags", Role: RoleSparse, Separator: "|", WeightSeparator: ":", IndexRange: [2]int64{1, 9}, HasIndexRange: true},
	}}
	for name, c := range map[string]struct {
		schema Schema
		want   string
	}{
		"criteo": {rowschema.CriteoSchema(), "sha256 17f355930351737c93f837d99300c814a0afe9ac9b365956971e32d5e9f75142"},
		"rich":   {rich, "sha256 16953e39179b9214326358ffd9cd5a93d821ae5ccb89d1ac98b300d1e6d2c4a0"},
	} {
		o := Options{Schema: c.schema}
		if got := o.settings()["schema"]; got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
