package ops

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestPanicOfAnOpIsAnError: an op that panics, on the machine's goroutine, makes
// the run fail and does not end the process.
func TestPanicOfAnOpIsAnError(t *testing.T) {
	g := gorgonia.NewGraph()
	x := float32Node(t, g, "x", []float32{1, 2, 3, 4}, 2, 2)
	y := gorgonia.Must(RowSum(x))
	SetResult(y, make([]float32, 1)) // two are needed
	m := gorgonia.NewTapeMachine(g)
	defer func() { _ = m.Close() }()
	err := m.RunAll()
	if err == nil || !strings.Contains(err.Error(), "does not fit") || !strings.Contains(err.Error(), "row-sum") {
		t.Fatalf("%v", err)
	}
}
