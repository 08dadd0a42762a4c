package jobparts_test

import (
	"fmt"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/jobparts"
)

// TestChangedIndices: a column of LibSVM whose indices are counted from another one, and one of
// LibFFM that is another field, have changed.
func TestChangedIndices(t *testing.T) {
	for _, x := range []struct{ format, before, now, want string }{
		{"libsvm", "range: [0, 99]", "range: [0, 199]", ""},
		{"libsvm", "range: [0, 99]", "range: [1, 99]", "c range[0] 0 1"},
		{"libsvm", "pooling: sum", "range: [1, 99]", "c range[0] 0 1"},
		{"libffm", "field: 3", "field: 4", "c field 3 4"},
	} {
		parse := func(key string) *configs.Job {
			job, err := configs.Parse("test.yaml", fmt.Appendf(nil, "data: {train: [x], format: %s, columns: [{name: c, %s}]}\nmodel: {kind: lr}\noutput: {model_dir: m}\n", x.format, key), configs.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return job
		}
		var got []string
		jobparts.ColumnChanges(parse(x.before), parse(x.now), func(column, what, before, now string) {
			got = append(got, strings.Join([]string{column, what, before, now}, " "))
		})
		if strings.Join(got, "; ") != x.want {
			t.Errorf("from %s to %s: %q, want %q", x.before, x.now, got, x.want)
		}
	}
}
