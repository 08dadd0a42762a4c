package configs

import (
	"strconv"
	"strings"
	"testing"
)

// TestDeepNesting: what would keep the parser busy for minutes is refused.
func TestDeepNesting(t *testing.T) {
	for _, part := range []string{"[", "{a: ", "- ", "a: [", "? ", "&a [", "!!x ", "a: ", "- [\n", "*a: {"} {
		for _, n := range []int{100, 100_000} {
			_, err := Parse("deep.yaml", []byte(strings.Repeat(part, n)), LoadOptions{})
			if err == nil {
				t.Errorf("%d times %q: no fault", n, part)
			}
		}
	}
}

// TestWideIsFine: a schema of thousands of columns is not deep.
func TestWideIsFine(t *testing.T) {
	var b strings.Builder
	b.WriteString("model: {kind: lr}\noutput: {model_dir: o}\ndata:\n  train: [a]\n  format: csv\n  columns:\n    - {name: y, role: label}\n    - {name: user}\n")
	for i := range 3000 {
		b.WriteString("    - {name: c" + strconv.Itoa(i) + ", role: dense, transform: [log1p, {clip: {max: 3}}]}\n")
	}
	if _, err := Parse("wide.yaml", []byte(b.String()), LoadOptions{}); err != nil {
		t.Errorf("%.200s", err.Error())
	}
}
