package reader

import (
	"encoding/json"
	"reflect"
	"strings"
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

// TestCursorsOfEarlierVersions checks that a cursor is encoded with the names that an earlier
// version of aibox used.
func TestCursorsOfEarlierVersions(t *testing.T) {
	const text = `{
		"files": [{"uri": "/x", "size": 9, "compression": "gzip"}], "options": {"seed": "1"}, "passes": 2,
		"file": 3, "unit": 4, "skip": 5, "line": 6,
		"long_lines": {"line": 7, "offset": 8, "length": 9, "total": 10, "open": true, "at_line": 11, "at_offset": 12, "bytes": 13, "text": 14, "lost": 15},
		"file_start": {"rows": 16, "bytes": 17},
		"counts": {"rows": 18, "examples": 19, "positives": 20, "dropped": 21, "bad_rows": 22,
			"bad": [{"reason": "wrong column count", "rows": 23, "example": {"uri": "/x", "line": 24, "offset": 25, "reason": "wrong column count", "detail": "d",
				"row": "r", "row_base64": "e", "lost_bytes": 26, "lost_rows": 27}}],
			"lost": [{"uri": "/x", "line": 28, "offset": 29, "lost_bytes": 30, "lost_rows": 31, "lost_rows_estimated": true, "end_is_missing": true, "cause": "c"}],
			"lost_bytes": 32, "lost_rows": 33, "bytes_read": 34, "bytes_total": 35},
		"missing_bytes": 36, "unit_rows": 37, "density": 38.5, "input_rows": 39, "quarantine_bytes": 40, "quarantine_rows": 41,
		"windows": 42, "taken": 43
	}`
	var c Cursor
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&c)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if json.Unmarshal(again, &got) != nil || json.Unmarshal([]byte(text), &want) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nis not\n%s", again, text)
	}
}
