package jobparts

import (
	"slices"
	"testing"

	"aibox/configs"
	"aibox/sparsetable"
)

// TestJobsKnowEveryFormat checks that the job file has the same names of formats as the table.
func TestJobsKnowEveryFormat(t *testing.T) {
	for _, k := range configs.Keys() {
		if k.Path == "sparse_table.value_format" {
			if !slices.Equal(k.Values, sparsetable.ValueFormats()) || k.Default != sparsetable.Float32.String() {
				t.Errorf("values %v, default %s", k.Values, k.Default)
			}
			return
		}
	}
	t.Error("no such key")
}
