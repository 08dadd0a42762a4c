package sparsetable_test

import (
	"errors"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// TestNoDirectory checks that a table without a directory has no snapshots, even if the working
// directory has snapshots of another table.
func TestNoDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	o := sparsetable.Options{Dir: ".", Layout: tabletest.CountLayout}
	other, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	info := tabletest.Commit(t, other, nil)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	o.Dir = ""
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.DropSnapshot(info.ID); !errors.Is(err, sparsetable.ErrNoSnapshot) {
		t.Errorf("dropping one: %v", err)
	}
	if _, err := tab.(sparsetable.SnapshotHolder).HoldSnapshot(info.ID); !errors.Is(err, sparsetable.ErrNoSnapshot) {
		t.Errorf("holding one: %v", err)
	}
	if all, err := tab.Snapshots(); len(all) != 0 || err != nil {
		t.Errorf("it has %d: %v", len(all), err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	o.Dir, o.MustExist = ".", true
	if other, err = sparsetable.Open(t.Context(), o); err != nil {
		t.Fatalf("the other table: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}
