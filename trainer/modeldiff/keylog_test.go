package modeldiff

import (
	"slices"
	"testing"

	"aibox/reader"
	"aibox/trainer/modeltable"
)

// TestValuesOfCell: what follows the last separator of a value is its weight, so that a value may
// have the separator in it.
func TestValuesOfCell(t *testing.T) {
	terms := reader.Column{Name: "terms", Separator: "|", WeightSeparator: ":"}
	k := keyLog{table: &modeltable.Table{Schema: reader.Schema{Columns: []reader.Column{terms}}}}
	values := k.values("terms", "x:y:0.5|z")
	for _, want := range []string{"x:y", "z"} {
		if !slices.Contains(values, want) {
			t.Errorf("%q has %q, not %q", "x:y:0.5|z", values, want)
		}
	}
}
