package slots

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// filled returns an index of rows keys, 0 to rows-1, whose slots all have buckets.
func filled(tb testing.TB, o Options, rows int64) *Index {
	tb.Helper()
	x, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := x.Close(); err != nil {
			tb.Error(err)
		}
	})
	for x.ShouldSplit(rows) {
		if err := x.Grow(); err != nil {
			tb.Fatal(err)
		}
	}
	for k := range rows {
		h := Hash(uint64(k))
		s := x.Slot(h)
		x.Add(s, h)
	}
	for s := range x.Slots() {
		x.Set(s, uint64(s)+1)
	}
	return x
}

// BenchmarkLookup looks up batches of 27,606 random keys (the unique keys of
// 4,096 examples of 26 fields in the table's benchmark), half of them present.
func BenchmarkLookup(b *testing.B) {
	for _, bm := range []struct {
		rows        int64
		filterBytes int
	}{{200_000, 32}, {2_000_000, 32}, {20_000_000, 0}, {20_000_000, 16}, {20_000_000, 32}, {20_000_000, 48}} {
		b.Run(fmt.Sprintf("rows=%dk/filter=%d", bm.rows/1000, bm.filterBytes), func(b *testing.B) {
			x := filled(b, Options{FilterBytes: bm.filterBytes}, bm.rows)
			const batch = 27_606
			hashes := make([]uint64, 32*batch)
			rng := rand.New(rand.NewPCG(1, 1))
			for i := range hashes {
				hashes[i] = Hash(rng.Uint64N(uint64(2 * bm.rows)))
			}
			slots, locations := make([]uint32, batch), make([]uint64, batch)
			negatives, i := 0, 0
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			start := threadTime(b)
			for b.Loop() {
				negatives += x.Lookup(hashes[i%32*batch:][:batch], slots, locations)
				i++
			}
			b.ReportMetric(float64(b.N)*batch/(threadTime(b)-start).Seconds()/1e6, "Mlookups/core-s")
			b.ReportMetric(float64(negatives)/float64(b.N*batch), "negatives")
			b.ReportMetric(float64(x.Bytes())/float64(bm.rows), "B/key")
		})
	}
}

// threadTime returns the processor time that this thread has taken. On a machine that others use as
// well, it says more than the elapsed time.
func threadTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
