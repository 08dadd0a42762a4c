package blockio

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReadOnly checks that a device for reading makes no directory and writes no file, that its
// files cannot be written, and that it reads the same bytes as a device for writing.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	if _, err := Open(t.Context(), filepath.Join(dir, "missing"), Options{ReadOnly: true, Logger: quiet}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 1024)
	if err := os.WriteFile(filepath.Join(dir, "file"), want, 0o444); err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1e9, 0)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	writing, err := probe(t.TempDir(), Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), dir, Options{ReadOnly: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	if d.Direct() != writing.direct || d.Unit() > writing.unit {
		t.Errorf("direct %v with units of %d, a device for writing %v of %d", d.Direct(), d.Unit(), writing.direct, writing.unit)
	}
	f, err := d.OpenFile("file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	p := NewPool(maxUnit, 0)
	defer p.Close()
	buf, err := p.Get(len(want))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Put(buf)
	if n, err := f.ReadAt(buf, 0); err != nil || !bytes.Equal(buf[:n], want) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := f.WriteAt(buf[:maxUnit], 0); err == nil {
		t.Error("a write succeeds")
	}
	if st, err := os.Stat(dir); err != nil || !st.ModTime().Equal(old) {
		t.Errorf("the directory was changed: %v, %v", st.ModTime(), err)
	}
}
