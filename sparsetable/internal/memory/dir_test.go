package memory

import (
	"os"
	"path/filepath"
	"testing"

	"aibox/sparsetable/internal/layout"
)

// dropping is a file system that drops a snapshot when it is about to be opened.
type dropping struct{ OSFS }

func (d dropping) Open(name string) (File, error) {
	if filepath.Base(name) == filepath.Base(SnapshotPath("", 1)) {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	return d.OSFS.Open(name)
}

// TestDroppedMeanwhile checks that a snapshot that is dropped while snapshots are being listed is
// left out.
func TestDroppedMeanwhile(t *testing.T) {
	d := snapshotDir{OSFS{}, t.TempDir()}
	for id := range uint64(2) {
		if _, err := d.create(id+1, layout.Layout{ValueDim: 1}, nil, func(*snapshotWriter) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	d.fs = dropping{}
	if infos, err := d.infos(); err != nil || len(infos) != 1 || infos[0].ID != 2 {
		t.Errorf("%v, %v, want snapshot 2", infos, err)
	}
}
