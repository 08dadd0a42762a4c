package sparsetable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"aibox/sparsetable/internal/memory"
)

// TestRealFiles uses the operating system's files once: an unfinished snapshot is deleted, other
// files are left alone, and a dropped snapshot is gone.
func TestRealFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model", "table")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	unfinished, foreign := memory.SnapshotPath(dir, 7)+".tmp", filepath.Join(dir, "snapshot-notes.txt")
	for _, name := range []string{unfinished, foreign} {
		if err := os.WriteFile(name, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Dir: dir, Layout: Layout{ValueDim: 2}}
	tab, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(unfinished); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished snapshot: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
	ws, err := tab.Pull(t.Context(), []uint64{3}, PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	o.Layout.SetStats(ws.Row(0), RowStats{Show: 1, Count: 1})
	ws.Release()
	p, err := tab.Snapshot(t.Context(), []byte("record"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(memory.SnapshotPath(dir, info.ID)); err != nil || st.Size() != info.Bytes {
		t.Errorf("size %v, want %d, %v", st, info.Bytes, err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	tab, err = Open(t.Context(), Options{Dir: dir, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if infos, err := tab.Snapshots(); err != nil || len(infos) != 1 || string(infos[0].Record) != "record" {
		t.Errorf("snapshots %+v, %v", infos, err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	tab, err = Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.DropSnapshot(info.ID); err != nil {
		t.Error(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	o.MustExist = true
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("after the drop: %v", err)
	}
}
