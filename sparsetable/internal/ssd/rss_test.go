//go:build !race

package ssd_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// anonymousBytes returns the process's memory that is not backed by a file, after the Go runtime
// has returned to the system all that it can.
func anonymousBytes(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		kib := int64(0)
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	t.Skip("the system does not say")
	return 0
}

// TestSSDProcessMemory checks that the table takes as much of the process's memory as its
// statistics say and its budget allows. The other 3 MiB are the Go runtime and the memory of the
// test itself.
func TestSSDProcessMemory(t *testing.T) {
	const rows, batch, slack = 120_000, 6_000, 3 << 20
	before := anonymousBytes(t)
	for _, budget := range []int64{8 << 20, 16 << 20} {
		o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: t.TempDir(), Layout: outsideLayout, MemoryBytes: budget}
		tab, err := sparsetable.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Import(t.Context(), &spreadRows{n: rows, row: make([]float32, outsideLayout.Words())}); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, uint64(budget)))
		for range 8 {
			keys := make([]uint64, 0, batch)
			for from := rng.IntN(rows / batch); len(keys) < batch; from += rows / batch {
				keys = append(keys, tabletest.SpreadKey(from))
			}
			tab.Announce(keys)
			ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
			if err != nil {
				t.Fatal(err)
			}
			for i := range ws.Len() {
				touchRow(outsideLayout, ws.Row(i))
			}
			ws.Release()
		}
		tabletest.Commit(t, tab, nil)
		took, st := anonymousBytes(t)-before, tab.Stats()
		t.Logf("budget of %d KiB: the process took %d KiB, the table says %d", budget>>10, took>>10, st.MemoryBytes>>10)
		d, err := sparsetable.DetailsOf(t.Context(), tab)
		if err != nil {
			t.Fatal(err)
		}
		slack := int64(slack)
		if d.Directories[0].Engine != "io_uring" {
			slack += 64 << 10 * int64(min(runtime.GOMAXPROCS(0), 128)) // stacks of threads that read
		}
		if st.MemoryBytes > budget || took > st.MemoryBytes+slack {
			t.Errorf("the process took %d bytes, the table says %d, its budget is %d", took, st.MemoryBytes, budget)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
