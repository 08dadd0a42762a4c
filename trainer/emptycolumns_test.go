package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
)

// TestWarnsOfEmptyColumns checks that a night in which columns have no values ends with a warning
// that names them, whether it begins with a new model or with that of the night before. The usual
// cause of such a column is an error in how the log is written, which otherwise shows only in the
// model's AUC.
func TestWarnsOfEmptyColumns(t *testing.T) {
	night := func(rows int, line func(i int) string, start string) (model, warned string) {
		dir := t.TempDir()
		var text strings.Builder
		text.WriteString("label,age,price,user,tags\n")
		for i := range rows {
			text.WriteString(line(i) + "\n")
		}
		if err := os.WriteFile(filepath.Join(dir, "log.csv"), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := configs.Parse("job.yaml", fmt.Appendf(nil, `
data:
  train: [%[1]s/log.csv]
  format: csv
  columns:
    - {name: label, role: label}
    - {name: age, role: dense}
    - {name: price, role: dense, missing: 0}
    - {name: user}
    - {name: tags, separator: "|"}
model: {kind: lr}
training: {batch_size: 64, warm_start: %[2]q}
output: {model_dir: %[1]s/model}
`, dir, start), configs.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range train(t, j).Warnings {
			if strings.Contains(w, "empty in all of the first") {
				warned += w
			}
		}
		return j.Output.ModelDir, warned
	}
	whole := func(i int) string { return fmt.Sprintf("%d,%d,%d,u%d,a|b", i%2, i%90, i, i%7) }
	first, warned := night(emptyRows, whole, "")
	if warned != "" {
		t.Errorf("all columns have values: %s", warned)
	}
	for _, c := range []struct {
		rows int
		line func(i int) string
		want string
	}{
		{emptyRows, func(i int) string { return fmt.Sprintf("%d,,0,u%d,a", i%2, i%7) }, "column age is empty in all of the first 1000 training examples"},
		{emptyRows, func(i int) string { return fmt.Sprintf("%d,,,,|", i%2) }, "columns age, user, tags are empty in"},
		{emptyRows, func(i int) string { return fmt.Sprintf("%d,%s,,u,", i%2, strings.Repeat("7", i/(emptyRows-1))) }, "column tags is empty in"},
		{emptyRows - 1, func(i int) string { return fmt.Sprintf("%d,,,,", i%2) }, ""},
	} {
		for _, start := range []string{"", first} {
			if _, warned := night(c.rows, c.line, start); !strings.Contains(warned, c.want) || (warned == "") != (c.want == "") {
				t.Errorf("start %q: it says %q, want %q", start, warned, c.want)
			}
		}
	}
}

// emptyRows is the least number of examples without a value after which a column counts as empty.
const emptyRows = 1000
