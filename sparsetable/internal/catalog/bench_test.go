package catalog

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// These are the pages of 500,000 slots, for 12 million rows, as package slots makes them with
// filters of 32 bytes.
const (
	benchSlots     = 500_000
	benchPageSlots = 128
	benchPageBytes = 12 + benchPageSlots*40
)

func benchCatalog(b *testing.B, dir string) *Catalog {
	b.Helper()
	f := testFormat
	f.PageSlots = benchPageSlots
	c, err := Open(Options{Dir: dir, Format: f})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// commitPages commits a snapshot with every step-th page.
func commitPages(b *testing.B, c *Catalog, page []byte, step int) {
	b.Helper()
	w, err := c.Begin()
	if err != nil {
		b.Fatal(err)
	}
	for p := 0; p < c.pages(benchSlots); p += step {
		if err := w.PutPage(uint32(p), page); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Commit(Snapshot{Slots: benchSlots}); err != nil {
		b.Fatal(err)
	}
	if all := c.Snapshots(); len(all) > 2 {
		if err := c.Drop(all[0].ID); err != nil {
			b.Fatal(err)
		}
	}
}

func benchPage() []byte {
	page := make([]byte, benchPageBytes)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range page {
		page[i] = byte(rng.Uint32())
	}
	return page
}

// BenchmarkCommit commits snapshots on the temporary directory's file system and keeps two of them.
// The time includes compactions.
func BenchmarkCommit(b *testing.B) {
	for _, dirty := range []int{100, 1} {
		b.Run(fmt.Sprintf("dirty=%d%%", dirty), func(b *testing.B) {
			c := benchCatalog(b, b.TempDir())
			defer c.Close()
			page := benchPage()
			commitPages(b, c, page, 1)
			for b.Loop() {
				commitPages(b, c, page, 100/dirty)
			}
			n, err := c.DiskBytes()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n)/1e6, "MB-on-disk")
			b.ReportMetric(float64(c.pages(benchSlots)*benchPageBytes)/1e6, "MB-index")
		})
	}
}

// BenchmarkOpen opens a catalog and loads the newest of two snapshots.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	c := benchCatalog(b, dir)
	page := benchPage()
	for _, step := range []int{1, 1, 3, 10} {
		commitPages(b, c, page, step)
	}
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c := benchCatalog(b, dir)
		n := 0
		if _, err := c.Load(0, func(uint32, []byte) error { n++; return nil }); err != nil || n != c.pages(benchSlots) {
			b.Fatal(n, err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
