package reader

import (
	"slices"
	"testing"
)

// TestTinyWeights checks that the weight of a feature that is subnormal in float32 counts as 0,
// since its reciprocal is infinite.
func TestTinyWeights(t *testing.T) {
	want := []float32{0, 0, 0x1p-126, -2}
	csv := Schema{Format: FormatCSV, Header: true, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "u", Role: RoleSparse, Separator: "|", WeightSeparator: ":"}}}
	svm := Schema{Format: FormatLibSVM, Columns: []Column{{Name: "u", Role: RoleSparse, IndexRange: [2]int64{0, 9}, HasIndexRange: true}}}
	for name, o := range map[string]Options{
		"csv":    testOptions(csv, write(t, t.TempDir(), "a.csv", []byte("y,u\n1,a:1e-45|b:-1e-39|c:1.1754943508222875e-38|d:-2\n"))),
		"libsvm": testOptions(svm, write(t, t.TempDir(), "a.svm", []byte("1 1:1e-45 2:-1e-39 3:1.1754943508222875e-38 4:-2\n"))),
	} {
		passes, counts := mustRead(t, o)
		if counts.Examples != 1 || !slices.Equal(passes[0].Batches[0].BagWeights, want) {
			t.Errorf("%s: %+v, weights %v, want %v", name, counts, passes[0].Batches[0].BagWeights, want)
		}
	}
}
