package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestLocalLeftovers checks that the next file that is put into a directory removes what killed
// writers have left there, but not what running ones are writing.
func TestLocalLeftovers(t *testing.T) {
	at := t.TempDir()
	s := New(Options{})
	defer s.Close()
	d, err := s.Directory(at)
	if err != nil {
		t.Fatal(err)
	}
	alive, err := localFS{}.Create(t.Context(), filepath.Join(at, "x", "alive"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alive.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	others := []string{".hidden", ".some.tmp", "x.0123456789ab.tmp"}
	for _, name := range append(others, ".dead.0123456789ab.tmp", ".0.json.ba9876543210.tmp") {
		if err := os.WriteFile(filepath.Join(at, "x", name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Put(t.Context(), "x/new", strings.NewReader("new"), 3, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := alive.Prepare(); err != nil { // which closes the file
		t.Fatal(err)
	}
	if err := d.Put(t.Context(), "x/new", strings.NewReader("new"), 3, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := alive.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := d.List(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	if got, want := strings.Join(names, " "), strings.Join(others[:2], " ")+" alive new "+others[2]; got != want {
		t.Errorf("there are %q, want %q", got, want)
	}
}

// TestCreateRemovesLeftovers checks that an output does the same, but only for files whose names
// show that they are aibox's.
func TestCreateRemovesLeftovers(t *testing.T) {
	at := t.TempDir()
	for _, name := range []string{".scores-1.csv.0123456789ab.aibox.tmp", ".other.0123456789ab.tmp"} {
		if err := os.WriteFile(filepath.Join(at, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{})
	defer s.Close()
	alive, err := s.Create(t.Context(), filepath.Join(at, "alive"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Create(t.Context(), filepath.Join(at, "scores-2.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []Writer{w, alive} {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	list, err := os.ReadDir(at)
	if err != nil || len(list) != 3 || list[0].Name() != ".other.0123456789ab.tmp" {
		t.Errorf("there are %v, %v", list, err)
	}
}

// TestLocalLeftoversRace checks that writers and those that remove leftovers do not disturb each
// other.
func TestLocalLeftoversRace(t *testing.T) {
	at := t.TempDir()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 500 {
				removeLocalLeftovers(at, anyTemp)
				w, err := localFS{}.Create(t.Context(), filepath.Join(at, fmt.Sprint(i, "-", j)))
				if err == nil {
					err = w.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if list, err := os.ReadDir(at); err != nil || len(list) != 2000 {
		t.Errorf("there are %d files, %v", len(list), err)
	}
}
