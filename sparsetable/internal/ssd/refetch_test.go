package ssd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/sparsetable"
)

// repairSource is a source whose files have all of their bytes, but many of these are wrong. If it is
// asked for bytes again, it returns the right ones, and also writes them into the files if writes is
// set.
type repairSource struct {
	dir      string
	right    map[string][]byte // by base name
	hopeless bool              // the bytes that it returns are wrong, too
	writes   bool

	mu    sync.Mutex
	asked int
}

func (m *repairSource) Lacks(name string) bool           { return m.right[name] != nil }
func (m *repairSource) Here(string, int64, int64) bool   { return true }
func (m *repairSource) Await(string, int64, int64) error { return nil }
func (m *repairSource) Again(name string, buf []byte, offset int64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if m.hopeless {
		clear(buf)
		return true, nil
	}
	copy(buf, m.right[name][offset:])
	if !m.writes {
		return true, nil
	}
	f, err := os.OpenFile(filepath.Join(m.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	_, err = f.WriteAt(buf, offset)
	return true, errors.Join(err, f.Close())
}

// TestRefetch checks a table whose bucket files come from elsewhere and are damaged everywhere. It
// asks once more for what it reads, and then has the right rows, for pulls and for scans. If that
// does not help, the error names the file.
func TestRefetch(t *testing.T) {
	f := makeFlipped(t)
	rng := testseed.Rand(t)
	for _, readOnly := range []bool{false, true} {
		for _, scans := range []bool{false, true} {
			for _, hopeless := range []bool{false, true} {
				dir := t.TempDir()
				f.write(t, dir)
				m := &repairSource{dir: dir, right: map[string][]byte{}, hopeless: hopeless, writes: !readOnly}
				for name, data := range f.files {
					if !strings.HasSuffix(name, ".bucket") {
						continue
					}
					m.right[name] = data
					wrong := append([]byte{}, data...)
					for at := rng.IntN(40); at < len(wrong); at += 1 + rng.IntN(512) {
						wrong[at] ^= 1 << rng.IntN(8)
					}
					if err := os.WriteFile(filepath.Join(dir, name), wrong, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				o := f.opts(dir)
				o.ReadOnly, o.SSD.Source = readOnly, m
				err := readFlipped(t, f, o, scans)
				var damaged *sparsetable.CorruptionError
				switch {
				case m.asked == 0:
					t.Error("nothing was asked for again")
				case hopeless && (!errors.As(err, &damaged) || m.right[filepath.Base(damaged.File)] == nil):
					t.Errorf("read only: %v, scans: %v: of damaged files: %v", readOnly, scans, err)
				case !hopeless && err != nil:
					t.Errorf("read only: %v, scans: %v: %v", readOnly, scans, err)
				}
			}
		}
	}
}

// gatedSource is a repairSource that answers only once that many callers ask at the same time.
type gatedSource struct {
	repairSource
	want    int
	here    atomic.Int64
	enough  chan struct{} // closed: so many were there, or it has taken too long
	close   sync.Once
	tooLong atomic.Bool
}

func (c *gatedSource) Again(name string, buf []byte, offset int64) (bool, error) {
	if c.here.Add(1) == int64(c.want) {
		c.close.Do(func() { close(c.enough) })
	}
	select {
	case <-c.enough:
	case <-time.After(time.Minute): // so that the test fails and does not hang
		c.tooLong.Store(true)
		c.close.Do(func() { close(c.enough) })
	}
	defer c.here.Add(-1)
	return c.repairSource.Again(name, buf, offset)
}

// TestRefetchesTogether checks that the damaged buckets of a pull are requested again at the same
// time, and so are the headers of the files when the table is opened.
func TestRefetchesTogether(t *testing.T) {
	f := makeFlipped(t)
	for _, headers := range []bool{false, true} {
		dir := t.TempDir()
		f.write(t, dir)
		c := &gatedSource{repairSource: repairSource{dir: dir, right: map[string][]byte{}}, want: 4, enough: make(chan struct{})}
		for name, data := range f.files {
			if !strings.HasSuffix(name, ".bucket") {
				continue
			}
			c.right[name] = data
			wrong := append([]byte{}, data...)
			if from := 4096; headers {
				clear(wrong[:from])
			} else {
				clear(wrong[from:])
			}
			if err := os.WriteFile(filepath.Join(dir, name), wrong, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if headers {
			if c.want = min(c.want, len(c.right)); c.want < 2 {
				t.Fatalf("the table has %d files", len(c.right))
			}
		}
		o := f.opts(dir)
		o.ReadOnly, o.SSD.Source = true, c
		if err := readFlipped(t, f, o, false); err != nil || c.tooLong.Load() {
			t.Errorf("headers: %v: they were asked for one after the other: %v, %v", headers, c.tooLong.Load(), err)
		}
	}
}

// readFlipped reads all rows of a table and compares them.
func readFlipped(t *testing.T, f *flipped, o sparsetable.Options, scans bool) error {
	t.Helper()
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		return err
	}
	defer tab.Close()
	if scans {
		n := 0
		err := tab.Scan(t.Context(), func(key uint64, row []float32) error {
			if n++; row[0] != f.rows[key] {
				t.Errorf("key %#x has %v, want %v", key, row[0], f.rows[key])
			}
			return nil
		})
		if err == nil && n != len(f.rows) {
			t.Errorf("%d rows, want %d", n, len(f.rows))
		}
		return err
	}
	var keys []uint64
	for key := range f.rows {
		keys = append(keys, key)
	}
	for len(keys) > 0 {
		some := keys[:min(400, len(keys))]
		keys = keys[len(some):]
		ws, err := tab.Pull(t.Context(), some, sparsetable.PullLookup)
		if err != nil {
			return err
		}
		for i, key := range some {
			if ws.Row(i)[0] != f.rows[key] {
				t.Errorf("key %#x has %v, want %v", key, ws.Row(i)[0], f.rows[key])
			}
		}
		ws.Release()
	}
	return nil
}
