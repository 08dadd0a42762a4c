package ssd_test

import (
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/tabletest"
)

// TestSSDWidestRows checks that a slot of a table has room for as many of the widest rows as come
// together by chance, also on devices whose small blocks would have room for only seven. Wider rows
// are refused.
func TestSSDWidestRows(t *testing.T) {
	o := sparsetable.Options{FS: newSSDDisk(1), Layout: sparsetable.Layout{ValueDim: 1<<16 - 1}, MemoryBytes: 64 << 20}
	o.Layout.ValueDim -= o.Layout.Words() - o.Layout.ValueDim
	open := ssdKind("", 1).Open
	wider := o
	wider.Layout.ValueDim++
	if err := wider.Layout.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), wider); err == nil || !strings.Contains(err.Error(), "at most 65535") {
		t.Errorf("rows of 65536 words: %v", err)
	}
	tab, err := open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var keys []uint64
	for i := uint64(0); len(keys) < 12; i++ {
		if slots.Hasher(0x9e3779b97f4a7c15).Of(i)%64 == 0 { // the hash of tables in tests
			keys = append(keys, i)
		}
	}
	trainKeysOf(t, tab, keys)
	if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Error(err)
	}
	tabletest.Commit(t, tab, nil)
	if err := tab.Close(); err != nil {
		t.Error(err)
	}
	if tab, err = open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if row := ws.Row(i); row[0] != float32(k) || row[o.Layout.ValueDim-1] != float32(k) {
			t.Errorf("row %d is wrong", i)
		}
	}
	ws.Release()
	if err := tab.Close(); err != nil {
		t.Error(err)
	}
}

// trainKeysOf sets the first and the last value of each key's row to the key.
func trainKeysOf(t *testing.T, tab sparsetable.Table, keys []uint64) {
	t.Helper()
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Release()
	l := tab.Layout()
	for i, k := range keys {
		row := ws.Row(i)
		row[0], row[l.ValueDim-1] = float32(k), float32(k)
		l.SetStats(row, sparsetable.RowStats{Count: 1})
	}
}
