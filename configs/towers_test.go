package configs

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestDefaultTowerNames: the tower of columns without a group has the same name however many groups
// there are, so that a warm start finds it again where one was added. It is not that of a group.
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

// TestManyDenseColumns: twice as many dense columns in a tower take twice as much to check, and not
// four times as much.
func TestManyDenseColumns(t *testing.T) {
	allocated := func(n int) uint64 {
		var columns strings.Builder
		for i := range n {
			fmt.Fprintf(&columns, ", {name: c%d, role: dense}", i)
		}
		job := []byte(`
data: {train: [x.csv], format: csv, columns: [{name: label, role: label}, {name: user}` + columns.String() + `]}
model: {kind: aibox}
output: {model_dir: model}
`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		j, err := Parse("job.yaml", job, LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if towers := j.TowerColumns(); len(towers) != 1 || len(towers[0]) != n {
			t.Fatalf("%d towers", len(towers))
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if one, two := allocated(1000), allocated(2000); two > 3*one {
		t.Errorf("%d bytes for 1,000 columns, %d for 2,000", one, two)
	} else {
		t.Logf("%d bytes for 1,000 columns, %d for 2,000", one, two)
	}
}
