package gpu_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/internal/testseed"
)

// spaces are memories that differ.
var spaces = [...]*memoryOf{{64}, {96}}

type memoryOf struct{ bytes int }

func (m *memoryOf) Name() string { return "m" }
func (m *memoryOf) Bytes() int   { return m.bytes }
func (m *memoryOf) Free() error  { return nil }

// randomUses is what an operation uses, as an argument list in which some are numbers.
func randomUses(rng *rand.Rand) []gpu.Arg {
	args := []gpu.Arg{gpu.Int32(1)}
	for range rng.IntN(4) {
		m := spaces[rng.IntN(len(spaces))]
		r := gpu.Region{Memory: m, Width: rng.IntN(9), Rows: rng.IntN(6), Pitch: []int{8, 8, 12}[rng.IntN(3)]}
		if r.Offset = rng.IntN(24); r.Check("") != nil {
			continue
		}
		args = append(args, []func(gpu.Region) gpu.Arg{gpu.Read, gpu.Read, gpu.Write, gpu.Update}[rng.IntN(4)](r))
	}
	return args
}

// needs says byte by byte whether a must come before b.
func needs(a, b []gpu.Arg) bool {
	for _, x := range a {
		for _, y := range b {
			if !x.IsRegion() || !y.IsRegion() || x.Region.Memory != y.Region.Memory || x.Kind == gpu.ReadArg && y.Kind == gpu.ReadArg {
				continue
			}
			other := bytesOf(y.Region)
			for at := range bytesOf(x.Region) {
				if other[at] {
					return true
				}
			}
		}
	}
	return false
}

// TestOrder compares Order with a search byte by byte: all that is needed follows from what Order
// says, nothing else does, and nothing can be left out.
func TestOrder(t *testing.T) {
	rng := testseed.Rand(t)
	waits, left := 0, 0
	for range 300 {
		operations := make([][]gpu.Arg, rng.IntN(90))
		for i := range operations {
			operations[i] = randomUses(rng)
		}
		after := gpu.Order(operations)
		if len(after) != len(operations) {
			t.Fatalf("%d for %d operations", len(after), len(operations))
		}
		oracle, said := make([][]bool, len(operations)), make([][]bool, len(operations)) // what comes before each
		close := func(before [][]bool, i, j int) {
			before[i][j] = true
			for k, b := range before[j] {
				before[i][k] = before[i][k] || b
			}
		}
		for i := range operations {
			oracle[i], said[i] = make([]bool, i), make([]bool, i)
			for j := range i {
				if needs(operations[j], operations[i]) {
					close(oracle, i, j)
				}
			}
			for k, j := range after[i] {
				if j >= i || k > 0 && after[i][k-1] <= j {
					t.Fatalf("operation %d waits for %v", i, after[i])
				}
				for _, other := range after[i][:k] {
					if said[other][j] {
						t.Fatalf("operation %d waits for %v, and %d for %d", i, after[i], other, j)
					}
				}
				close(said, i, j)
				waits++
			}
			if !slices.Equal(said[i], oracle[i]) {
				t.Fatalf("operation %d comes after %v, want %v", i, said[i], oracle[i])
			}
			if i > 0 && len(after[i]) == 0 {
				left++
			}
		}
	}
	if waits < 1000 || left < 100 {
		t.Errorf("%d waits, %d operations without", waits, left)
	}
}

// TestOverlapsOfColumns: columns of one matrix overlap where their numbers do, however many rows
// there are, and however long it takes to look at each.
func TestOverlapsOfColumns(t *testing.T) {
	const rows, pitch = 1 << 40, 100
	m := &memoryOf{rows * pitch}
	columns := func(lo, n, first int) gpu.Region {
		return gpu.Region{Memory: m, Offset: first*pitch + lo, Width: n, Rows: rows - first, Pitch: pitch}
	}
	for _, c := range []struct {
		a, b gpu.Region
		want bool
	}{
		{columns(0, 50, 0), columns(50, 50, 0), false}, {columns(0, 51, 0), columns(50, 50, 0), true},
		{columns(0, 50, 0), columns(50, 50, 9), false}, {columns(0, 51, 7), columns(50, 50, 0), true},
		{columns(20, 10, 0), columns(20, 10, rows/2), true}, {columns(20, 10, 0), columns(0, 100, rows/2), true},
		{columns(20, 10, 0), gpu.Part(m, 50*pitch+30, 90), false}, {columns(20, 10, 0), gpu.Part(m, 50*pitch+30, 91), true},
	} {
		if c.a.Overlaps(c.b) != c.want || c.b.Overlaps(c.a) != c.want {
			t.Errorf("%v and %v: want %v", c.a, c.b, c.want)
		}
	}
}
