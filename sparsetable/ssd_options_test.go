package sparsetable_test

import (
	"path/filepath"
	"testing"

	"aibox/sparsetable"
)

func TestKindIn(t *testing.T) {
	if kind := sparsetable.KindIn(filepath.Join(t.TempDir(), "none")); kind != sparsetable.KindMemory {
		t.Errorf("no directory: %q", kind)
	}
	for _, want := range []string{sparsetable.KindMemory, sparsetable.KindSSD} {
		dir := t.TempDir()
		if kind := sparsetable.KindIn(dir); kind != sparsetable.KindMemory {
			t.Errorf("an empty directory: %q", kind)
		}
		o := sparsetable.Options{Kind: want, Dir: dir, Layout: stressLayout}
		tab, err := sparsetable.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tab.Snapshot(t.Context(), nil)
		if err == nil {
			_, err = p.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
		have := sparsetable.KindIn(dir)
		if have != want {
			t.Errorf("a table of kind %q: %q", want, have)
		}
		// What it says opens the table.
		tab, err = sparsetable.Open(t.Context(), sparsetable.Options{Kind: have, Dir: dir, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if st := tab.Stats(); st.Kind != want {
			t.Errorf("opened as %q, is %q", have, st.Kind)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
