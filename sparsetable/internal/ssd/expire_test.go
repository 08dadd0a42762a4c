package ssd_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
)

// TestSSDExpireCountsWhatWasDropped makes every operation of an Expire fail in turn. Expire must
// return the number of rows that it dropped, and another Expire must drop the rest.
func TestSSDExpireCountsWhatWasDropped(t *testing.T) {
	seed := testseed.Of(t)
	script := faultScript{layout: faultyLayout, keys: 900, batch: 150, resident: 250}
	parts := 0
	rule := sparsetable.ExpiryRule{Today: 10, UnseenDays: 5}
	for n := 0; ; n++ {
		f := newFaulty(t, script, seed)
		var err error
		if f.table, err = f.open(f.opts); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			f.train()
		}
		before := int64(len(f.rows))
		decide, hit := blocktest.FailNth(n, seed, syscall.EIO, blocktest.Read, blocktest.Write, blocktest.Create)
		f.setFaults(func(op faultyOp) blocktest.Fault {
			if op.fs {
				return blocktest.Fault{}
			}
			return decide(blocktest.Op{Kind: op.kind, Bytes: op.bytes})
		})
		dropped, err := f.table.Expire(t.Context(), rule)
		f.setFaults(nil)
		if err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("seed %d, operation %d: %v", seed, n, err)
		}
		left := int64(0)
		scan := func() error {
			left = 0
			return f.table.Scan(t.Context(), func(key uint64, _ []float32) error {
				left++
				if _, ok := f.rows[key]; !ok {
					t.Fatalf("seed %d, operation %d: key %x is there", seed, n, key)
				}
				return nil
			})
		}
		again := scan()
		deadline := time.Now().Add(2 * time.Minute)
		for errors.Is(again, syscall.EIO) && time.Now().Before(deadline) { // until the background has tried again
			time.Sleep(time.Millisecond)
			again = scan()
		}
		if again != nil {
			t.Fatalf("seed %d, operation %d: %v", seed, n, again)
		}
		if dropped != before-left || f.table.Stats().Expired != dropped {
			t.Fatalf("seed %d, operation %d: Expire counts %d rows, statistics %d, of %d rows are left %d; %v",
				seed, n, dropped, f.table.Stats().Expired, before, left, err)
		}
		if err != nil && dropped > 0 {
			parts++
		}
		expired := int64(0)
		for k := range f.rows {
			if 10-dayOf(k) > rule.UnseenDays {
				expired++
			}
		}
		for { // what failed may come up again
			more, err := f.table.Expire(t.Context(), rule)
			dropped += more
			if err == nil {
				break
			}
			if time.Sleep(time.Millisecond); time.Now().After(deadline) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("seed %d, operation %d, the disk works again: %v", seed, n, err)
			}
		}
		if dropped != expired {
			t.Fatalf("seed %d, operation %d: %d rows dropped in the end, want %d", seed, n, dropped, expired)
		}
		if err := f.table.Close(); err != nil && !errors.Is(err, syscall.EIO) { // what the background met may come up only now
			t.Fatalf("seed %d, operation %d: %v", seed, n, err)
		}
		if !hit.Load() {
			t.Logf("seed %d: %d operations, %d times some rows were dropped before", seed, n, parts)
			break
		}
	}
	if parts == 0 {
		t.Error("no Expire failed half-way")
	}
}

// TestSSDExpireByNoRuleReadsNothing checks that Expire does not read the table if the rule expires
// nothing.
func TestSSDExpireByNoRuleReadsNothing(t *testing.T) {
	f := newFaulty(t, faultScript{layout: faultyLayout, keys: 900, batch: 150, resident: 250}, testseed.Of(t))
	var err error
	if f.table, err = f.open(f.opts); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		f.train()
	}
	if err := f.table.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.setFaults(func(op faultyOp) blocktest.Fault {
		if !op.fs && op.kind == blocktest.Read {
			return blocktest.Fault{Err: syscall.EIO}
		}
		return blocktest.Fault{}
	})
	if rows, err := f.table.Expire(t.Context(), sparsetable.ExpiryRule{Today: 1000, ShowDecay: 0.5}); rows != 0 || err != nil {
		t.Errorf("%d rows, %v", rows, err)
	}
	f.setFaults(nil)
	if err := f.table.Close(); err != nil {
		t.Error(err)
	}
}
