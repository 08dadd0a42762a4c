package takeover

import (
	"testing"

	"aibox/reader"
	"aibox/reader/rowschema"
)

// TestStatisticsOfStepsWithNumbers: while the job gives a mean, that of an earlier night is
// forgotten, and does not come back when the job gives none any more.
func TestStatisticsOfStepsWithNumbers(t *testing.T) {
	schema := func(given bool) *reader.Schema {
		return &reader.Schema{Columns: []reader.Column{
			{Name: "a", Transforms: []rowschema.Transform{{Kind: rowschema.TransformLog1p}, {Kind: rowschema.TransformStandardize, HasMeanStd: given, Mean: 5, Std: 2}}},
			{Name: "b", Transforms: []rowschema.Transform{{Kind: rowschema.TransformStandardize}}},
		}}
	}
	for _, c := range []struct {
		before, now bool
		want        int
	}{{false, false, 2}, {false, true, 1}, {true, false, 1}, {true, true, 1}} {
		s := reader.Statistics{Columns: []reader.ColumnStatistics{{Column: "a", Step: 1, Mean: 7}, {Column: "b", Mean: 3}}}
		keepStatistics(&s, schema(c.before), schema(c.now))
		if len(s.Columns) != c.want || s.Columns[len(s.Columns)-1].Column != "b" {
			t.Errorf("%+v: %+v", c, s.Columns)
		}
	}
}
