package ssd_test

import (
	"math/rand/v2"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable/internal/ssd"
)

// TestSSDImportReadsAhead imports into a table whose buckets are rewritten all the time with
// trained rows. Some of the buckets that were read ahead are then out of date, and none of their
// old rows may reappear.
func TestSSDImportReadsAhead(t *testing.T) {
	const keys = 12_000
	seeds, first := uint64(4), testseed.Of(t)
	if testing.Short() {
		seeds = 1
	}
	for i := range seeds {
		b := newBulkTable(t, first+i, 2, 1<<20, 4<<20)
		b.importRows(b.source(40_000, keys))
		for range 3 {
			b.train(4000, keys) // dirty rows of all slots
			src := b.source(3000, keys)
			stop, ended := make(chan struct{}), make(chan error)
			go func() {
				rng := rand.New(rand.NewPCG(first+i, 3))
				for {
					select {
					case <-stop:
						ended <- nil
						return
					default:
					}
					err := ssd.EvictRows(b.tab, 60)
					if err == nil && rng.IntN(8) == 0 {
						_, err = ssd.EmptyAFile(t.Context(), b.tab, rng)
					}
					if err != nil {
						ended <- err
						return
					}
				}
			}()
			before := b.tab.Stats()
			n, err := b.tab.Import(t.Context(), src)
			close(stop)
			if other := <-ended; other != nil {
				t.Fatal(other)
			}
			if err != nil || n != src.count {
				t.Fatalf("%d rows imported, want %d: %v", n, src.count, err)
			}
			b.keep(src)
			st := b.tab.Stats()
			t.Logf("%d rows imported, %d written otherwise", n, st.FlushedRows-before.FlushedRows-n)
			b.check(b.rows, nil)
		}
		b.close()
	}
}
