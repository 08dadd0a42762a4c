package memory

import (
	"errors"
	"log/slog"
	"testing"

	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
)

// TestPullWithoutMemory checks that a Pull of new keys for which the process has no memory fails,
// changes nothing, and succeeds once there is memory. Keys that the table already has need no
// memory.
func TestPullWithoutMemory(t *testing.T) {
	table, err := Open(t.Context(), Options{Layout: layout.Layout{ValueDim: 16}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	free := int64(1 << 30)
	table.mu.room = room{free: func() int64 { return free }}
	pull := func(from, to uint64) error {
		var keys []uint64
		for k := from; k < to; k++ {
			keys = append(keys, k+1)
		}
		ws, err := table.Pull(t.Context(), keys, contract.PullCreate)
		if err == nil {
			ws.Release()
		}
		return err
	}
	rows := uint64(0)
	for err = nil; err == nil && rows < 20_000_000; {
		if err = pull(rows, rows+10_000); err == nil {
			rows += 10_000
		}
		free = max(0, 1<<30-2*table.Stats().MemoryBytes) // others take memory, too
	}
	left := free
	if !errors.Is(err, contract.ErrMemory) || table.Stats().Rows != int64(rows) || left < leastFreeBytes/2 || left > 200<<20 {
		t.Errorf("with %d rows and %d bytes free: %v", rows, left, err)
	}
	if err := pull(0, rows); err != nil {
		t.Errorf("rows that are there: %v", err)
	}
	free = 1 << 30
	if err := pull(rows, rows+10_000); err != nil {
		t.Errorf("with memory again: %v", err)
	}
	free = -1 // unknown
	if err := pull(rows, rows+1_000_000); err != nil {
		t.Errorf("where the system does not say what is free: %v", err)
	}
}

// TestSnapshotWithoutMemory checks that if the process has no memory for copies of the pinned rows,
// none are made, and the snapshot is written before training continues.
func TestSnapshotWithoutMemory(t *testing.T) {
	table, err := Open(t.Context(), Options{Dir: t.TempDir(), FS: OSFS{}, Logger: slog.New(slog.DiscardHandler), Layout: layout.Layout{ValueDim: 16}})
	if err != nil {
		t.Fatal(err)
	}
	ws, err := table.Pull(t.Context(), []uint64{1, 2, 3}, contract.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ws.Len() {
		row := ws.Row(i)
		row[len(row)-1] = 1 // it is trained
	}
	for _, free := range []int64{1 << 30, leastFreeBytes} {
		table.mu.Lock()
		table.mu.room = room{free: func() int64 { return free }}
		c := newCapture(table.mu.slabs)
		err := c.securePinned(table)
		table.mu.Unlock()
		if enough := free > leastFreeBytes; err != nil || c.inline == enough || (c.copies > 0) != enough {
			t.Errorf("with %d bytes free: %d copies, inline %v, %v", free, c.copies, c.inline, err)
		}
		if err := c.close(table); err != nil {
			t.Fatal(err)
		}
	}
	pending, err := table.Snapshot(t.Context(), nil)
	if err == nil {
		_, err = pending.Wait()
	}
	ws.Release()
	if err := errors.Join(err, table.Close()); err != nil {
		t.Error(err)
	}
}
