package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// directorySuite is what files in a Directory do, wherever it is.
func directorySuite(t *testing.T, d *Directory) {
	ctx := t.Context()
	names := func(dir string) string {
		t.Helper()
		list, err := d.List(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range list {
			out = append(out, fmt.Sprint(e.Name, ":", e.Size))
		}
		return strings.Join(out, " ")
	}
	read := func(name string, size int64) (string, error) {
		r, err := d.Open(ctx, name, size, 0)
		if err != nil {
			return "", err
		}
		data, err := io.ReadAll(r)
		return string(data), errors.Join(err, r.Close())
	}
	if got := names("x"); got != "" {
		t.Errorf("a directory that does not exist has %q", got)
	}
	exists := func() bool {
		t.Helper()
		there, err := d.Exists(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	if exists() {
		t.Error("the directory is said to exist before anything was written")
	}
	if d.LocalPath() != "" {
		if err := d.Put(ctx, "x/b", strings.NewReader("two"), 3, 0o644); !errors.Is(err, ErrNotFound) || exists() {
			t.Errorf("a file was put into a directory that does not exist, which may not be mounted: %v", err)
		}
		if err := os.Mkdir(d.LocalPath(), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	big := strings.Repeat("0123456789abcdef", 200_000)
	for name, text := range map[string]string{"x/b": "two", "x/a": "", "x/.h": "h", "y/c": big} {
		if err := d.Put(ctx, name, strings.NewReader(text), int64(len(text)), 0o644); err != nil {
			t.Fatal(err)
		}
		if !exists() {
			t.Error("the directory is said not to exist")
		}
		if got, err := read(name, int64(len(text))); err != nil || got != text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if got := names("x"); got != ".h:1 a:0 b:3" {
		t.Errorf("the directory has %q", got)
	}
	if err := d.Put(ctx, "x/b", strings.NewReader("other"), 5, 0o644); err != nil { // replaces it
		t.Fatal(err)
	}
	if got, err := read("x/b", 5); err != nil || got != "other" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := read("x/b", 6); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that is too short: %v", err)
	}
	if _, err := read("x/none", 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that does not exist: %v", err)
	}
	if err := d.Rename(ctx, "x/b", "new/b"); err != nil {
		t.Fatal(err)
	}
	if err := d.Rename(ctx, "x/b", "new/b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a second rename: %v", err)
	}
	if err := d.Rename(ctx, "x/.h", "new/b"); err != nil { // replaces it
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Remove(ctx, "x/a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := names("x") + "|" + names("new"); got != "|b:1" {
		t.Errorf("there are %q", got)
	}
	// Files that are put at the same time do not disturb one another.
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if err := d.Put(ctx, fmt.Sprintf("many/%02d", i), strings.NewReader(big), int64(i), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := d.List(ctx, "many"); err != nil || len(list) != 40 {
		t.Errorf("there are %d files, %v", len(list), err)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.Put(stopped, "stopped/x", strings.NewReader(big), int64(len(big)), 0o644); !errors.Is(err, context.Canceled) {
		t.Errorf("after it was told to stop: %v", err)
	}
	if got := names("stopped"); got != "" {
		t.Errorf("it left %q", got)
	}
}

func TestLocalDirectory(t *testing.T) {
	at := t.TempDir()
	s := New(Options{})
	defer s.Close()
	for _, uri := range []string{filepath.Join(at, "a"), "file://" + at + "/b/", "file://" + at + "/c"} {
		d, err := s.Directory(uri)
		if err != nil {
			t.Fatal(err)
		}
		directorySuite(t, d)
		// Data that are too short leave nothing behind.
		if err := d.Put(t.Context(), "short/x", strings.NewReader("four"), 5, 0o644); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
		if list, err := d.List(t.Context(), "short"); err != nil || len(list) > 0 {
			t.Errorf("there are %v, %v", list, err)
		}
	}
	if _, err := s.Directory("s3://x"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := s.Directory(filepath.Join(at, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Put(t.Context(), "x", strings.NewReader("x"), 1, 0o644); err == nil {
		t.Error("a file is no directory")
	}
}
