package configs

import (
	"fmt"
	"slices"
	"testing"
)

// TestDefaultTowerNames: the tower of columns without a group has the same name however many groups there are, so that
// a warm start finds it again where one was added. It is not that of a group.
func TestDefaultTowerNames(t *testing.T) {
	for _, want := range [][]string{{"tower1"}, {"a", "tower1"}, {"a", "b", "tower1"}, {"tower1", "tower2"}, {"tower2", "tower1"}} {
		columns, groups := "", want[:len(want)-1]
		for _, g := range groups {
			columns += fmt.Sprintf(", {name: of %s, role: dense, group: %s}", g, g)
		}
		j, err := Parse("job.yaml", []byte(`
data: {train: [x.csv], format: csv, columns: [{name: label, role: label}, {name: user}, {name: x, role: dense}`+columns+`]}
model: {kind: aibox}
output: {model_dir: model}
`), LoadOptions{})
		if err != nil {
			t.Fatalf("%q: %v", groups, err)
		}
		var names []string
		for _, tower := range j.Model.Towers {
			names = append(names, tower.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("with the groups %q, the towers are %q, want %q", groups, names, want)
		}
	}
}
