package sparsetable

import (
	"math/rand/v2"
	"testing"
)

// benchTable has a million rows of 32 words.
func benchTable(b *testing.B) Table {
	b.Helper()
	t, err := Open(b.Context(), Options{Layout: Layout{ValueDim: 17, StateDim: 11}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := t.Close(); err != nil {
			b.Error(err)
		}
	})
	return t
}

func BenchmarkPull(b *testing.B) {
	t := benchTable(b)
	const rows, pulled = 1 << 20, 1 << 16
	all := make([]uint64, rows)
	for i := range all {
		all[i] = uint64(i)
	}
	ws, err := t.Pull(b.Context(), all, PullCreate)
	if err != nil {
		b.Fatal(err)
	}
	ws.Release()
	rand.New(rand.NewPCG(1, 1)).Shuffle(rows, func(i, j int) { all[i], all[j] = all[j], all[i] })
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ws, err := t.Pull(b.Context(), all[i*pulled:(i+1)*pulled], PullCreate)
		if err != nil {
			b.Fatal(err)
		}
		ws.Release()
		i = (i + 1) % (rows / pulled)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pulled, "ns/key")
}

// TestPullAllocations: a steady-state Pull allocates the set, not its rows.
func TestPullAllocations(t *testing.T) {
	tab, err := Open(t.Context(), Options{Layout: Layout{ValueDim: 4}})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]uint64, 5000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	n := testing.AllocsPerRun(20, func() {
		ws, err := tab.Pull(t.Context(), keys, PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		ws.Release()
	})
	if n > 4 {
		t.Errorf("%v allocations to pull %d keys", n, len(keys))
	}
	if err := tab.Close(); err != nil {
		t.Error(err)
	}
}
