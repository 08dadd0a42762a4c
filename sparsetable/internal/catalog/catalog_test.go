package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var testFormat = Format{TableID: "t1", ValueDim: 16, StateDim: 1, RowFormat: "float32", Hash: "murmur3-fmix64", UnitBytes: 512, PageSlots: 4}

func open(tb testing.TB, fs vfs.FS) *Catalog {
	tb.Helper()
	c, err := Open(Options{Dir: "cat", Format: testFormat, FS: fs})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func shut(tb testing.TB, c *Catalog) {
	tb.Helper()
	if err := c.Close(); err != nil {
		tb.Fatal(err)
	}
}

// model has the expected contents of a catalog.
type model struct {
	live      [][]byte // pages of the table at work
	dirty     map[uint32]bool
	snapshots []modelSnapshot
}

type modelSnapshot struct {
	Snapshot
	pages [][]byte
}

func (m *model) clone() *model {
	return &model{slices.Clone(m.live), cloneSet(m.dirty), slices.Clone(m.snapshots)}
}

func cloneSet(s map[uint32]bool) map[uint32]bool {
	c := map[uint32]bool{}
	maps.Copy(c, s)
	return c
}

// train changes some pages of the open table, and adds some pages or removes the last ones.
func (m *model) train(rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		m.live = slices.Clone(m.live[:len(m.live)-rng.IntN(len(m.live)/2+1)])
		maps.DeleteFunc(m.dirty, func(p uint32, _ bool) bool { return int(p) >= len(m.live) })
	}
	for range rng.IntN(4) {
		m.live = append(m.live, nil)
		m.dirty[uint32(len(m.live)-1)] = true
	}
	if len(m.live) == 0 {
		m.live, m.dirty[0] = [][]byte{nil}, true
	}
	for range rng.IntN(5) {
		m.dirty[rng.Uint32N(uint32(len(m.live)))] = true
	}
	for _, p := range slices.Sorted(maps.Keys(m.dirty)) { // the same draws in every run
		m.live[p] = fmt.Appendf(nil, "page %d %s", p, bytes.Repeat([]byte{'x'}, rng.IntN(300)))
		m.live[p] = fmt.Appendf(m.live[p], "%d", rng.Uint64())
	}
}

// commit commits the open table. After an error, the model is as before.
func (m *model) commit(c *Catalog, rng *rand.Rand) error {
	w, err := c.Begin()
	if err != nil {
		return err
	}
	for p, data := range m.live {
		if m.dirty[uint32(p)] {
			if err := w.PutPage(uint32(p), data); err != nil {
				return errors.Join(err, w.Abort())
			}
		}
	}
	s := Snapshot{
		Slots:    uint32(len(m.live) * testFormat.PageSlots),
		Rows:     int64(rng.IntN(1000)),
		Files:    []File{{ID: uint32(w.ID()), Dir: 1, Bytes: 100, LiveBytes: -5}},
		Deltas:   []Delta{{Dir: 2, Name: fmt.Sprintf("delta-%d", w.ID()), Bytes: 7, Rows: 3}},
		Counters: map[string]int64{"a": rng.Int64(), "b": -1},
		Record:   fmt.Appendf(nil, "record %d", rng.Uint64()),
	}
	if rng.IntN(2) == 0 {
		s.Slots -= uint32(rng.IntN(testFormat.PageSlots)) // a page that is not full
	}
	if err := w.Commit(s); err != nil {
		return err
	}
	s.ID, s.PageBytes = w.id, w.pageBytes
	m.snapshots = append(m.snapshots, modelSnapshot{s, slices.Clone(m.live)})
	m.dirty = map[uint32]bool{}
	return nil
}

func (m *model) drop(c *Catalog, i int) error {
	if err := c.Drop(m.snapshots[i].ID); err != nil {
		return err
	}
	m.snapshots = slices.Delete(slices.Clone(m.snapshots), i, i+1)
	return nil
}

// load makes a snapshot the one that the open table is based on.
func (m *model) load(c *Catalog, s modelSnapshot) error {
	if _, err := c.Load(s.ID, func(uint32, []byte) error { return nil }); err != nil {
		return err
	}
	m.live, m.dirty = slices.Clone(s.pages), map[uint32]bool{}
	return nil
}

// reopened returns the model as a new process finds it: no snapshot is loaded yet.
func (m *model) reopened() *model {
	return &model{dirty: map[uint32]bool{}, snapshots: slices.Clone(m.snapshots)}
}

// differs loads every snapshot and returns an error that says how the catalog differs from the
// model.
func (m *model) differs(c *Catalog) error {
	var want []Snapshot
	for _, s := range m.snapshots {
		want = append(want, s.Snapshot)
	}
	if got := c.Snapshots(); !reflect.DeepEqual(got, want) {
		return fmt.Errorf("snapshots are %+v, want %+v", got, want)
	}
	for _, s := range m.snapshots {
		var pages [][]byte
		got, err := c.Load(s.ID, func(p uint32, data []byte) error {
			if int(p) != len(pages) {
				return fmt.Errorf("page %d comes as number %d", p, len(pages))
			}
			pages = append(pages, bytes.Clone(data))
			return nil
		})
		if err != nil {
			return fmt.Errorf("snapshot %d: %w", s.ID, err)
		}
		if !reflect.DeepEqual(got, s.Snapshot) || !reflect.DeepEqual(pages, s.pages) {
			return fmt.Errorf("snapshot %d is %+v, want %+v; pages are equal: %v", s.ID, got, s.Snapshot, reflect.DeepEqual(pages, s.pages))
		}
	}
	return nil
}

// TestModel commits, aborts, drops, loads and reopens at random and compares the catalog with the
// model. In the end the catalog must not have any unused pages.
func TestModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			fs := vfs.NewMem()
			c := open(t, fs)
			m := (&model{}).reopened()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 40 {
				switch op := rng.IntN(10); {
				case op < 5:
					m.train(rng)
					must(m.commit(c, rng))
				case op < 6:
					m.train(rng)
					w, err := c.Begin()
					must(err)
					must(w.PutPage(0, []byte("never")))
					must(w.Abort())
				case op < 8 && len(m.snapshots) > 0:
					must(m.drop(c, rng.IntN(len(m.snapshots))))
				case op < 9 && len(m.snapshots) > 0:
					must(m.load(c, m.snapshots[rng.IntN(len(m.snapshots))]))
				case op == 9:
					shut(t, c)
					c = open(t, fs)
					m = m.reopened()
					if n := len(m.snapshots); n > 0 {
						must(m.load(c, m.snapshots[n-1]))
					}
				}
			}
			shut(t, c)
			c = open(t, fs)
			m = m.reopened()
			must(m.differs(c))
			checkGarbage(t, c, m, rng)
			shut(t, c)
		})
	}
}

// checkGarbage commits twice, after which all garbage must be deleted, and looks for it.
func checkGarbage(t *testing.T, c *Catalog, m *model, rng *rand.Rand) {
	t.Helper()
	if n := len(m.snapshots); n > 0 {
		if err := m.load(c, m.snapshots[n-1]); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		m.train(rng)
		if err := m.commit(c, rng); err != nil {
			t.Fatal(err)
		}
	}
	noGarbage(t, c)
}

// noGarbage returns an error if there are page versions that nothing uses.
func noGarbage(t *testing.T, c *Catalog) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.garbage) > 0 {
		t.Errorf("garbage is left: %v", c.mu.garbage)
	}
	garbage, err := c.sweep(nil, nil)
	if err != nil || len(garbage) > 0 {
		t.Errorf("unused pages are left: %v, %v", garbage, err)
	}
}

// TestGarbage checks that, also without a restart, everything is deleted that only dropped
// snapshots used: also the pages on which the open table was based, and those that a
// failed commit should have deleted.
func TestGarbage(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	fs := vfs.NewMem()
	c := open(t, fs)
	m := (&model{}).reopened()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		m.train(rng)
		must(m.commit(c, rng))
		must(m.drop(c, 0)) // the table at work goes on without it
		noGarbage(t, c)
		m.dirty[0] = true
		m.train(rng)
		must(m.commit(c, rng)) // page 0 of the one dropped is garbage now
		w, err := c.Begin()
		must(err)
		must(w.Abort())
		m.train(rng)
		must(m.commit(c, rng))
		noGarbage(t, c)
		must(m.drop(c, 0))
		must(m.drop(c, 0))
	}
	must(c.Close())

	// A new process finds no snapshot, and pages of the last one.
	c = open(t, fs)
	defer shut(t, c)
	m = (&model{}).reopened()
	m.train(rng)
	must(m.commit(c, rng))
	noGarbage(t, c)
	must(m.differs(c))
}

// TestTemporaryFiles checks that Open removes a sorted table that a crash left unfinished.
func TestTemporaryFiles(t *testing.T) {
	fs := vfs.NewMem()
	shut(t, open(t, fs))
	path := "cat/" + tablePrefix + "snapshot-9" + tmpSuffix
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, fs))
	if _, err := fs.Stat(path); err == nil {
		t.Errorf("%s is left", path)
	}
}

// TestSpace checks that the disk does not fill up with pages of dropped snapshots.
func TestSpace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := open(t, vfs.NewMem())
	defer shut(t, c)
	page := make([]byte, 16<<10)
	const pages = 400
	for i := range 12 {
		w, err := c.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for p := range uint32(pages) {
			for j := range page {
				page[j] = byte(rng.Uint32())
			}
			if err := w.PutPage(p, page); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(Snapshot{Slots: pages * 4}); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if err := c.Drop(w.ID() - 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	const one = int64(pages * 16 << 10)
	for left := 12_000; ; left-- { // Pebble deletes files when it comes to it
		n, err := c.DiskBytes()
		if err != nil {
			t.Fatal(err)
		}
		if n >= one && n <= 3*one+compactBytes {
			return
		}
		if n < one || left == 0 {
			t.Fatalf("one snapshot of %d bytes takes %d on disk", one, n)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestFormat(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := Open(Options{Dir: "cat", FS: fs, MustExist: true}); !errors.Is(err, ErrNotExist) {
		t.Errorf("no catalog: %v", err)
	}
	if _, err := Open(Options{Dir: "cat", FS: fs, ReadOnly: true}); !errors.Is(err, ErrNotExist) {
		t.Errorf("no catalog, read-only: %v", err)
	}
	for _, dir := range []string{t.TempDir(), t.TempDir() + "/none"} {
		for _, readOnly := range []bool{false, true} {
			if _, err := Open(Options{Dir: dir, MustExist: true, ReadOnly: readOnly}); !errors.Is(err, ErrNotExist) {
				t.Errorf("no catalog in %s: %v", dir, err)
			}
		}
	}
	if _, err := Open(Options{Dir: "other", FS: fs, Format: Format{ValueDim: 1}}); err == nil {
		t.Error("a new table of an incomplete format")
	}
	shut(t, open(t, fs))
	for field, change := range map[string]func(*Format){
		"table_id":   func(f *Format) { f.TableID = "t2" },
		"value_dim":  func(f *Format) { f.ValueDim++ },
		"state_dim":  func(f *Format) { f.StateDim = 0 },
		"row_format": func(f *Format) { f.RowFormat = "float16" },
		"hash":       func(f *Format) { f.Hash = "none" },
		"unit_bytes": func(f *Format) { f.UnitBytes = 4096 },
		"page_slots": func(f *Format) { f.PageSlots = 512 },
	} {
		f := testFormat
		change(&f)
		var bad *FormatError
		if _, err := Open(Options{Dir: "cat", FS: fs, Format: f}); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("other %s: %v", field, err)
		}
	}
	c, err := Open(Options{Dir: "cat", FS: fs, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, c)
	want := testFormat
	want.Version = formatVersion
	if c.Format() != want {
		t.Errorf("format is %+v", c.Format())
	}
	if _, err := c.Begin(); !errors.Is(err, ErrReadOnly) {
		t.Errorf("commit to a read-only catalog: %v", err)
	}
	if err := c.Drop(1); !errors.Is(err, ErrReadOnly) {
		t.Errorf("drop from a read-only catalog: %v", err)
	}
}

func TestErrors(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, fs)
	if _, err := Open(Options{Dir: "cat", FS: fs}); err == nil {
		t.Error("opened twice")
	}
	if _, err := c.Load(0, nil); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("load nothing: %v", err)
	}
	if _, err := c.Snapshot(7); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("snapshot 7: %v", err)
	}
	for _, id := range []uint64{0, 7} {
		if err := c.Drop(id); !errors.Is(err, ErrNoSnapshot) {
			t.Errorf("drop %d: %v", id, err)
		}
	}
	w, err := c.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.PutPage(1, []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(Snapshot{Slots: 8}); err == nil {
		t.Error("committed without page 0")
	}
	if len(c.Snapshots()) != 0 {
		t.Error("it is there nevertheless")
	}
	m, rng := (&model{}).reopened(), rand.New(rand.NewPCG(1, 1))
	m.train(rng)
	if err := m.commit(c, rng); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if _, err := c.Load(0, func(uint32, []byte) error { return stop }); err != stop {
		t.Errorf("error of the callback: %v", err)
	}
	w, err = c.Begin()
	if err != nil {
		t.Fatal(err)
	}
	shut(t, c)
	if err := w.PutPage(1, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("page after Close: %v", err)
	}
	if _, err := c.Begin(); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after Close: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	names, err := fs.List("cat")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if bytes.HasSuffix([]byte(n), []byte(tmpSuffix)) {
			t.Errorf("%s is left", n)
		}
	}
}

// TestDamage flips every byte of every file: the damage must be noticed or do no harm.
func TestDamage(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, fs)
	m, rng := (&model{}).reopened(), rand.New(rand.NewPCG(3, 1))
	for range 3 {
		m.train(rng)
		if err := m.commit(c, rng); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, c)
	names, err := fs.List("cat")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	noticed := 0
	for _, name := range names {
		if !bytes.HasSuffix([]byte(name), []byte(".sst")) {
			continue
		}
		st, err := fs.Stat("cat/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for off := int64(0); off < st.Size(); off += 1 + rng.Int64N(120) {
			copied := vfs.NewMem()
			if ok, err := vfs.Clone(fs, copied, "cat", "cat"); err != nil || !ok {
				t.Fatal(err)
			}
			flip(t, copied, "cat/"+name, off)
			c, err := Open(Options{Dir: "cat", FS: copied})
			if err == nil {
				err = m.differs(c)
				if cerr := c.Close(); cerr != nil && err == nil {
					err = cerr
				}
			}
			if err == nil {
				continue // the table's properties, or padding
			}
			var damaged *CorruptionError
			if !errors.As(err, &damaged) {
				t.Fatalf("%s, byte %d: %v", name, off, err)
			}
			noticed++
		}
	}
	if noticed < 10 {
		t.Errorf("noticed %d", noticed)
	}
}

func flip(t *testing.T, fs vfs.FS, name string, off int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestManifest checks that the manifest does not grow without limit from commit to commit.
func TestManifest(t *testing.T) {
	c := open(t, vfs.NewMem())
	defer shut(t, c)
	largest := 0
	for i := range uint64(300) {
		w, err := c.Begin()
		if err == nil {
			err = errors.Join(w.PutPage(0, []byte("page")), w.Commit(Snapshot{Slots: 1}))
		}
		if err == nil && i > 0 {
			err = c.Drop(i) // the one before
		}
		if err == nil {
			err = c.WithContents(func(all Contents) error {
				for name, b := range all.Small {
					if strings.HasPrefix(name, "MANIFEST-") {
						largest = max(largest, len(b))
					}
				}
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if most := manifestBytes * 5 / 4; largest < manifestBytes/2 || largest > most {
		t.Errorf("the manifest had up to %d bytes, want no more than %d", largest, most)
	}
}
