package sparsetable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
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
		o := sparsetable.Options{Kind: want, Dir: dir, Layout: tabletest.CountLayout}
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

// TestOneDirectoryTwice checks that a directory cannot be named twice, by whatever names, whether
// it exists or not.
func TestOneDirectoryTwice(t *testing.T) {
	at := t.TempDir()
	t.Chdir(at)
	if err := errors.Join(os.MkdirAll("c0", 0o777), os.MkdirAll("c1", 0o777), os.Symlink("c0", "link"), os.Symlink(at, "here")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dirs  []string
		wrong string // part of the error
	}{
		{[]string{"c0", "c1"}, ""},
		{[]string{"c0", "c0/below", "new", "new/c0"}, ""},
		{[]string{"c0", ""}, "empty"},
		{[]string{"c0", "c1", "c0"}, `"c0" is given twice`},
		{[]string{"c0", "./c0"}, `"c0" and "./c0"`},
		{[]string{"c0/", "c1/../c0"}, `"c0/" and "c1/../c0"`},
		{[]string{"c0", filepath.Join(at, "c0")}, "are the same"},
		{[]string{"c0", "c1", "link"}, `"c0" and "link"`},
		{[]string{"here/c1", "c1"}, `"here/c1" and "c1"`},
		{[]string{"new", "./new"}, `"new" and "./new"`},
		{[]string{"new/a", "here/new/a"}, `"new/a" and "here/new/a"`},
	} {
		o := sparsetable.Options{Kind: sparsetable.KindSSD, SSD: sparsetable.SSDOptions{Dirs: c.dirs}}
		err := o.Validate()
		if c.wrong == "" {
			if err != nil {
				t.Errorf("%q: %v", c.dirs, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.wrong) || !errors.As(err, new(*sparsetable.OptionsError)) {
			t.Errorf("%q: %v, want an OptionsError with %q", c.dirs, err, c.wrong)
		}
	}
}
