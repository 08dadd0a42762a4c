package ssd_test

import (
	"errors"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
)

// TestSSDScanWhileMoving moves buckets and evicts rows while the table is scanned. Every row must
// be yielded exactly once.
func TestSSDScanWhileMoving(t *testing.T) {
	b := newBulkTable(t, 3, 2, 1<<20, 8<<20)
	b.importRows(b.source(40000, 20000))
	for range 3 { // dead buckets in all files, dirty rows in the cache
		b.train(3000, 20000)
		b.importRows(b.source(5000, 20000))
	}
	b.train(3000, 25000)
	moved := int64(0)
	seen := map[uint64]bool{}
	rows := 0
	err := b.tab.Scan(t.Context(), func(key uint64, row []float32) error {
		if seen[key] || row[0] != b.rows[key] {
			t.Fatalf("key %#x: seen %v, holds %v, want %v", key, seen[key], row[0], b.rows[key])
		}
		seen[key] = true
		if rows++; rows%3000 == 0 {
			// Rows that leave the cache leave dead buckets behind.
			if err := ssd.EvictRows(b.tab, 500); err != nil {
				return err
			}
			p, err := sparsetable.Compact(t.Context(), b.tab, 0.01, nil)
			moved += p.MovedBytes
			return err
		}
		return nil
	})
	if err != nil || len(seen) != len(b.rows) {
		t.Fatalf("%d rows, want %d: %v", len(seen), len(b.rows), err)
	}
	if moved == 0 {
		t.Error("nothing was moved: this tests nothing")
	}
	b.check(b.rows, nil)
	b.close()
}

// TestSSDScanStops checks that an error of the function ends a scan at any point.
func TestSSDScanStops(t *testing.T) {
	b := newBulkTable(t, 4, 1, 1<<20, 4<<20)
	b.importRows(b.source(20000, 10000))
	b.train(1000, 30000)
	boom := errors.New("boom")
	for _, at := range []int{1, 2, 500, len(b.rows)} {
		n := 0
		err := b.tab.Scan(t.Context(), func(uint64, []float32) error {
			if n++; n == at {
				return boom
			}
			return nil
		})
		if err != boom || n != at {
			t.Errorf("stopped at row %d, got to %d: %v", at, n, err)
		}
	}
	b.close()
}
