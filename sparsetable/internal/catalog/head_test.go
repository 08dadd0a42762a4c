package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FuzzDecodeHead adds the checksum to each input.
func FuzzDecodeHead(f *testing.F) {
	for _, h := range []head{{}, {last: 1, ids: []uint64{1}}, {last: 1 << 60, ids: []uint64{3, 4, 1 << 59}}, {last: 7}} {
		b := h.encode()
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sealed := binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))
		h, err := decodeHead(sealed)
		if err == nil && !bytes.Equal(h.encode(), sealed) {
			t.Errorf("%+v is encoded as %x, was %x", h, h.encode(), sealed)
		}
	})
}

// copyOf is a copy of the catalog in src.
func copyOf(t *testing.T, src vfs.FS) vfs.FS {
	t.Helper()
	dst := vfs.NewMem()
	if _, err := vfs.Clone(src, dst, "cat", "cat"); err != nil {
		t.Fatal(err)
	}
	return dst
}

// contents returns the files of the catalog in fs, without the lock.
func contents(t *testing.T, fs vfs.FS) map[string][]byte {
	t.Helper()
	names, err := fs.List("cat")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		f, err := fs.Open(fs.PathJoin("cat", name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		all[name] = b
	}
	return all
}

// trainedCatalog returns a catalog after several runs, with garbage, drops and a compaction.
func trainedCatalog(t *testing.T, seed uint64) (vfs.FS, *model) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	fs, m := vfs.NewMem(), (&model{}).reopened()
	for range 3 {
		c := open(t, fs)
		if err := session(c, m, rng, func(*model) {}, func(*model) {}); err != nil {
			t.Fatal(err)
		}
		m.train(rng) // whatever was dropped last, the newest is there
		if err := m.commit(c, rng); err != nil {
			t.Fatal(err)
		}
		shut(t, c)
		m = m.reopened()
	}
	return fs, m
}

// TestFlipEverything flips one bit in every byte of the catalog's small files, and in many bytes of
// its tables. Opening the catalog must either find all snapshots, or report damage without having
// changed any file.
func TestFlipEverything(t *testing.T) {
	fs, m := trainedCatalog(t, 5)
	rng := rand.New(rand.NewPCG(5, 1))
	noticed := map[string]int{}
	files := contents(t, fs)
	for _, name := range slices.Sorted(maps.Keys(files)) { // the same draws in every run
		b := files[name]
		kind, _, _ := strings.Cut(name, "-")
		if strings.HasSuffix(name, ".sst") {
			kind = "sst"
		}
		every := max(1, len(b)/250)
		if testing.Short() && len(b) > 250 {
			every *= 8
		}
		for at := rng.IntN(every); at < len(b); at += 1 + rng.IntN(2*every) {
			damaged := copyOf(t, fs)
			flip(t, damaged, fs.PathJoin("cat", name), int64(at))
			before := contents(t, damaged)
			c, err := Open(Options{Dir: "cat", Format: testFormat, FS: damaged})
			var corrupt *CorruptionError
			if errors.As(err, &corrupt) {
				noticed[kind]++
				if after := contents(t, damaged); !reflect.DeepEqual(after, before) {
					t.Errorf("%s, byte %d of %d: files have changed: %v", name, at, len(b), err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, byte %d of %d: %v", name, at, len(b), err)
				continue
			}
			if err := m.reopened().differs(c); err != nil && !errors.As(err, &corrupt) {
				t.Errorf("%s, byte %d of %d: %v", name, at, len(b), err)
			} else if err != nil {
				noticed[kind]++
			}
			shut(t, c)
		}
	}
	t.Logf("noticed: %v", noticed)
	for _, kind := range []string{HeadName, "MANIFEST", "sst"} {
		if noticed[kind] < 5 {
			t.Errorf("%d flips in %s were noticed", noticed[kind], kind)
		}
	}
}

// TestShortManifest truncates the manifest at every length.
func TestShortManifest(t *testing.T) {
	fs, m := trainedCatalog(t, 6)
	all := contents(t, fs)
	manifest := ""
	for name := range all { // an older one may be there
		if strings.HasPrefix(name, "MANIFEST") && name > manifest {
			manifest = name
		}
	}
	for size := range all[manifest] {
		damaged := copyOf(t, fs)
		f, err := damaged.Create(fs.PathJoin("cat", manifest), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(all[manifest][:size])
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{true, false} {
			c, err := Open(Options{Dir: "cat", Format: testFormat, FS: damaged, ReadOnly: readOnly})
			if errors.As(err, new(*CorruptionError)) {
				continue
			}
			if err != nil {
				t.Fatalf("cut at %d of %d: %v", size, len(all[manifest]), err)
			}
			t.Errorf("cut at %d of %d: not noticed; %v", size, len(all[manifest]), m.reopened().differs(c))
			shut(t, c)
		}
	}
}

// TestHead checks that a catalog without HEAD is opened, and has one afterwards, and that a catalog
// with the HEAD of another catalog is refused.
func TestHead(t *testing.T) {
	fs, m := trainedCatalog(t, 7)
	path := fs.PathJoin("cat", HeadName)
	want := contents(t, fs)[HeadName]
	if err := fs.Remove(path); err != nil {
		t.Fatal(err)
	}
	c, err := Open(Options{Dir: "cat", Format: testFormat, FS: fs, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	shut(t, c)
	if contents(t, fs)[HeadName] != nil {
		t.Error("opened for reading only, HEAD was written")
	}
	c = open(t, fs)
	if err := m.reopened().differs(c); err != nil {
		t.Error(err)
	}
	shut(t, c)
	if got := contents(t, fs)[HeadName]; !bytes.Equal(got, want) {
		t.Errorf("HEAD is %x, want %x", got, want)
	}

	// Interrupted drops are completed, interrupted commits kept.
	n := len(m.snapshots)
	last := m.snapshots[n-1].ID
	for _, c := range []struct {
		name    string
		head    head
		want    []modelSnapshot
		corrupt bool
	}{
		{"a drop", head{last, idsOf(m.snapshots[1:])}, m.snapshots[1:], false},
		{"the newest's drop", head{last, idsOf(m.snapshots[:n-1])}, m.snapshots[:n-1], false},
		{"a commit", head{last - 1, idsOf(m.snapshots[:n-1])}, m.snapshots, false},
		{"a lost snapshot", head{last + 1, append(idsOf(m.snapshots), last+1)}, nil, true},
		{"a lost id", head{last + 1, idsOf(m.snapshots)}, nil, true},
	} {
		for _, readOnly := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				fs := copyOf(t, fs)
				f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
				if err != nil {
					t.Fatal(err)
				}
				_, err = f.Write(c.head.encode())
				if err = errors.Join(err, f.Close()); err != nil {
					t.Fatal(err)
				}
				before := contents(t, fs)
				cat, err := Open(Options{Dir: "cat", Format: testFormat, FS: fs, ReadOnly: readOnly})
				if errors.As(err, new(*CorruptionError)) != c.corrupt {
					t.Fatal(err)
				}
				if err != nil {
					if after := contents(t, fs); !reflect.DeepEqual(after, before) {
						t.Error("files have changed")
					}
					return
				}
				if err := (&model{snapshots: c.want}).differs(cat); err != nil {
					t.Error(err)
				}
				shut(t, cat)
				h, err := decodeHead(contents(t, fs)[HeadName])
				if err != nil {
					t.Fatal(err)
				}
				if !readOnly && (h.last != last || !slices.Equal(h.ids, idsOf(c.want))) {
					t.Errorf("HEAD is %+v, want %v", h, idsOf(c.want))
				}
			})
		}
	}
}

func idsOf(list []modelSnapshot) (ids []uint64) {
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	return ids
}

// lockHook calls before when a file is locked for the first time.
type lockHook struct {
	vfs.FS
	before func()
}

func (l *lockHook) Unwrap() vfs.FS { return l.FS }

func (l *lockHook) Lock(name string) (io.Closer, error) {
	if before := l.before; before != nil {
		l.before = nil
		before()
	}
	return l.FS.Lock(name)
}

// TestChangedBeforeLock lets another process drop a snapshot and end just before the database is
// locked. That must not count as damage.
func TestChangedBeforeLock(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		fs, m := trainedCatalog(t, 6)
		hook := &lockHook{FS: fs, before: func() {
			c := open(t, fs)
			if err := m.drop(c, 0); err != nil {
				t.Fatal(err)
			}
			shut(t, c)
		}}
		c, err := Open(Options{Dir: "cat", Format: testFormat, FS: hook, ReadOnly: readOnly})
		if err != nil {
			t.Errorf("for reading only: %v: %v", readOnly, err)
			continue
		}
		if err := m.differs(c); err != nil {
			t.Error(err)
		}
		shut(t, c)
	}
}
