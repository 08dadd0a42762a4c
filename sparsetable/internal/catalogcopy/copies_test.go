package catalogcopy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"golang.org/x/sys/unix"

	"aibox/sparsetable/internal/catalog"
)

const (
	testTable = "0123456789abcdef"
	pageSlots = 4
)

var (
	testFormat = catalog.Format{TableID: testTable, ValueDim: 4, RowFormat: "float32", Hash: "h", UnitBytes: 512, PageSlots: pageSlots}
	quiet      = slog.New(slog.DiscardHandler)
	copyDirs   = []string{"b", "c"}
)

func openCatalog(fs vfs.FS, dir string) (*catalog.Catalog, error) {
	return catalog.Open(catalog.Options{Dir: dir, Format: testFormat, FS: fs})
}

// contents returns everything in a catalog as text.
func contents(c *catalog.Catalog) (string, error) {
	var b strings.Builder
	for _, s := range c.Snapshots() {
		fmt.Fprintf(&b, "snapshot %d %q:", s.ID, s.Record)
		if _, err := c.Load(s.ID, func(page uint32, data []byte) error {
			_, err := fmt.Fprintf(&b, " %d %x", page, data)
			return err
		}); err != nil {
			return "", err
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func commit(c *catalog.Catalog, rng *rand.Rand, pages int) error {
	if all := c.Snapshots(); len(all) > 0 {
		if _, err := c.Load(0, func(uint32, []byte) error { return nil }); err != nil {
			return err
		}
	}
	w, err := c.Begin()
	if err != nil {
		return err
	}
	for p := range pages {
		if err := w.PutPage(uint32(p), fmt.Appendf(nil, "%d", rng.Uint64())); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	return w.Commit(catalog.Snapshot{Slots: uint32(pages * pageSlots), Record: fmt.Appendf(nil, "%d", rng.Uint64())})
}

// inCopy returns everything in the newest copy, or "" if there is none.
func inCopy(fs vfs.FS, dirs ...string) (string, error) {
	found := Find(fs, dirs, quiet)
	if len(found) == 0 {
		return "", nil
	}
	over, err := found[0].FS()
	if err != nil {
		return "", err
	}
	c, err := catalog.Open(catalog.Options{Dir: found[0].Dir, FS: over, ReadOnly: true, Format: catalog.Format{PageSlots: pageSlots}})
	if err != nil {
		return "", err
	}
	read, err := contents(c)
	if err = errors.Join(err, c.Close()); err != nil {
		return "", err
	}
	// A catalog made of it has the same, and can be written.
	if err := found[0].Restore("again/catalog"); err != nil {
		return "", err
	}
	if c, err = openCatalog(fs, "again/catalog"); err != nil {
		return "", err
	}
	made, err := contents(c)
	if err == nil && made != read {
		err = fmt.Errorf("the catalog made of the copy has %s, the copy %s", made, read)
	}
	if err == nil {
		err = commit(c, rand.New(rand.NewPCG(1, 1)), 3)
	}
	return read, errors.Join(err, c.Close())
}

// history commits, drops and reopens. It calls after with the contents of the catalog: after each
// change, with a question mark appended, and after the Update. dropped says that the change was a
// drop.
func history(fs vfs.FS, rng *rand.Rand, after func(now string, dropped bool)) error {
	for range 3 {
		c, err := openCatalog(fs, "a/catalog")
		if err != nil {
			return err
		}
		x := Open(c, fs, copyDirs, quiet)
		for range 6 {
			all := c.Snapshots()
			dropped := len(all) > 2
			if dropped {
				err = c.Drop(all[rng.IntN(len(all))].ID)
			} else {
				err = commit(c, rng, 1+rng.IntN(6))
			}
			if err != nil {
				return errors.Join(err, c.Close())
			}
			now, err := contents(c)
			if err != nil {
				return errors.Join(err, c.Close())
			}
			after(now+"?", dropped) // it may be in the copies from now on
			x.Update(dropped)
			after(now, dropped)
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// TestCrash lets the machine crash before any operation. Each copy must be complete, and as the
// catalog was after the last Update, or as it was or is at the crash.
func TestCrash(t *testing.T) {
	for seed := range uint64(2) {
		rng, crashes := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
		mem := vfs.NewCrashableMem()
		for _, dir := range copyDirs { // a table's directories are there before its catalog
			if err := errors.Join(mem.MkdirAll(dir, 0o755), catalog.SyncDir(mem, "")); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		op := 0
		old, now := "", ""
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if o.Kind.ReadOrWrite() != errorfs.OpIsWrite || t.Failed() {
				return nil
			}
			if op++; testing.Short() && op%5 != 0 {
				return nil
			}
			for _, dir := range copyDirs {
				clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[op%3], RNG: crashes})
				got, err := inCopy(clone, dir)
				if err != nil || got != old && got != now {
					t.Errorf("seed %d, crash at operation %d (%v %s): the copy in %s has %q, want %q or %q: %v", seed, op, o.Kind, o.Path, dir, got, old, now, err)
				}
			}
			return nil
		}))
		set := func(s string, _ bool) {
			mu.Lock()
			defer mu.Unlock()
			if before, ok := strings.CutSuffix(s, "?"); ok {
				now = before
			} else {
				old, now = s, s
			}
		}
		if err := history(fs, rng, set); err != nil {
			t.Fatal(err)
		}
		t.Logf("seed %d: %d operations", seed, op)
		if op < 100 {
			t.Errorf("only %d operations", op)
		}
	}
}

// TestFailures makes any operation on one copy fail. The catalog and the other copy must be as
// without the failure. The copy must be right, or as it was before the commit, or invalid, and the
// next Update must make it right.
func TestFailures(t *testing.T) {
	for n := 0; ; n++ {
		mem := vfs.NewMem()
		var mu sync.Mutex
		op, failed := 0, false
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if !strings.HasPrefix(o.Path, "b/") || o.Kind == errorfs.OpFileClose {
				return nil
			}
			if op++; op-1 != n {
				return nil
			}
			failed = true
			return fmt.Errorf("%w: operation %d, %v %s", errorfs.ErrInjected, n, o.Kind, o.Path)
		}))
		updates, before := 0, ""
		err := history(fs, rand.New(rand.NewPCG(7, 0)), func(now string, dropped bool) {
			if strings.HasSuffix(now, "?") {
				return
			}
			updates++
			if got, err := inCopy(mem, "c"); err != nil || got != now {
				t.Errorf("operation %d fails: the other copy has %q, want %q: %v", n, got, now, err)
			}
			if got, err := inCopy(mem, "b"); err != nil || got != now && (!failed || got != "" && (got != before || dropped)) {
				t.Errorf("operation %d fails: the copy has %q, want %q: %v", n, got, now, err)
			} else if before = got; got == now {
				mu.Lock()
				failed = false // it must not be invalid again
				mu.Unlock()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if t.Failed() || op <= n {
			t.Logf("%d operations", op)
			return
		}
		if n += 3; testing.Short() {
			n += 10
		}
	}
}

// TestUnreadableCatalog checks that if the catalog cannot be read, the copies stay as they were
// before a commit, and become invalid after a drop.
func TestUnreadableCatalog(t *testing.T) {
	mem, failing := vfs.NewMem(), false
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if failing && strings.HasPrefix(o.Path, "a/") && o.Kind != errorfs.OpFileClose {
			return errorfs.ErrInjected
		}
		return nil
	}))
	c, err := openCatalog(fs, "a/catalog")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x, rng := Open(c, fs, copyDirs, quiet), rand.New(rand.NewPCG(5, 0))
	update := func(dropped bool) {
		failing = true
		x.Update(dropped)
		failing = false
	}
	check := func(when, want string) {
		t.Helper()
		for _, dir := range copyDirs {
			if got, err := inCopy(mem, dir); got != want || err != nil {
				t.Errorf("%s: the copy in %s has %q, want %q: %v", when, dir, got, want, err)
			}
		}
	}
	if err := commit(c, rng, 3); err != nil {
		t.Fatal(err)
	}
	x.Update(false)
	first, err := contents(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(c, rng, 3); err != nil {
		t.Fatal(err)
	}
	update(false)
	check("after a commit", first)
	if err := c.Drop(1); err != nil {
		t.Fatal(err)
	}
	update(true)
	check("after a drop", "")
	x.Update(false)
	last, err := contents(c)
	if err != nil {
		t.Fatal(err)
	}
	check("in the end", last)
}

// TestDamage flips a bit of each file of the copy, and truncates it. The copy must not be used.
func TestDamage(t *testing.T) {
	mem := vfs.NewMem()
	if err := history(mem, rand.New(rand.NewPCG(3, 0)), func(string, bool) {}); err != nil {
		t.Fatal(err)
	}
	dir := "b/" + DirName(testTable)
	names, err := mem.List(dir)
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	whole, err := inCopy(mem, "b")
	if err != nil || whole == "" {
		t.Fatal(whole, err)
	}
	rng := rand.New(rand.NewPCG(4, 0))
	for _, name := range names {
		if name == lockName { // it is empty
			continue
		}
		path := mem.PathJoin(dir, name)
		b := readAll(t, mem, path)
		for _, damaged := range [][]byte{b[:len(b)-1], nil, flipped(b, rng.IntN(len(b)*8)), flipped(b, rng.IntN(len(b)*8))} {
			if err := writeBytes(mem, path, damaged); err != nil {
				t.Fatal(err)
			}
			if got, err := inCopy(mem, "b"); got != "" || err != nil {
				t.Errorf("a copy with a damaged %s is used: %q, %v", name, got, err)
			}
			if got, err := inCopy(mem, "b", "c"); got != whole || err != nil {
				t.Errorf("with a damaged %s in one copy, the other is not used: %q, %v", name, got, err)
			}
		}
		if err := writeBytes(mem, path, b); err != nil {
			t.Fatal(err)
		}
	}
}

// listing is a file system that lists a file that no longer exists when it is opened.
type listing struct {
	vfs.FS
	gone string // "": all files are there
}

func (l *listing) List(dir string) ([]string, error) {
	names, err := l.FS.List(dir)
	if l.gone != "" && err == nil {
		names = append(names, l.gone)
	}
	return names, err
}

// TestObsoleteFiles covers files that Pebble deletes in the background, such as its options from
// before it was opened, while the catalog's files are listed for the copies.
func TestObsoleteFiles(t *testing.T) {
	fs := &listing{FS: vfs.NewMem()}
	c, err := openCatalog(fs, "a/catalog")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := commit(c, rand.New(rand.NewPCG(1, 2)), 3); err != nil {
		t.Fatal(err)
	}
	want, err := contents(c)
	if err != nil {
		t.Fatal(err)
	}
	fs.gone = "OPTIONS-000001"
	var log bytes.Buffer
	Open(c, fs, copyDirs, slog.New(slog.NewTextHandler(&log, nil)))
	fs.gone = ""
	if log.Len() > 0 {
		t.Error(log.String())
	}
	if got, err := inCopy(fs, copyDirs...); got != want || err != nil {
		t.Errorf("the copy has %q, want %q: %v", got, want, err)
	}
}

func flipped(b []byte, bit int) []byte {
	b = bytes.Clone(b)
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

func readAll(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// unsyncedDirs is a file system that cannot sync directories, such as VirtualBox's shared folders.
type unsyncedDirs struct{ vfs.FS }

func (fs unsyncedDirs) OpenDir(name string) (vfs.File, error) {
	d, err := fs.FS.OpenDir(name)
	return unsyncedDir{d}, err
}

type unsyncedDir struct{ vfs.File }

func (unsyncedDir) Sync() error {
	return &iofs.PathError{Op: "sync", Path: "a directory", Err: unix.EINVAL}
}

// TestUnsyncedDirs checks that a catalog and its copies can be made, and a catalog restored from a copy, on a file
// system that cannot sync directories.
func TestUnsyncedDirs(t *testing.T) {
	fs, rng := unsyncedDirs{vfs.NewMem()}, rand.New(rand.NewPCG(1, 1))
	c, err := openCatalog(fs, "a/catalog")
	if err != nil {
		t.Fatal(err)
	}
	x := Open(c, fs, copyDirs, quiet)
	if err := commit(c, rng, 5); err != nil {
		t.Fatal(err)
	}
	x.Update(false)
	now, err := contents(c)
	if err = errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	if copied, err := inCopy(fs, copyDirs...); copied != now || err != nil {
		t.Errorf("the copy has %q, the catalog %q: %v", copied, now, err)
	}
}

var errCrash = errors.New("the machine crashes")

// crashingRemoval is a file system whose machine crashes when a directory is being deleted and one of its files is gone.
type crashingRemoval struct{ vfs.FS }

func (fs crashingRemoval) RemoveAll(name string) error {
	if names, err := fs.List(name); err != nil || len(names) == 0 {
		return fs.FS.RemoveAll(name)
	}
	return errors.Join(errCrash, fs.Remove(fs.PathJoin(name, catalog.HeadName)))
}

// TestRestoreIsAtomic checks that a crash while a catalog is replaced by its copy does not leave a part of the old one.
func TestRestoreIsAtomic(t *testing.T) {
	mem, rng := vfs.NewMem(), rand.New(rand.NewPCG(1, 1))
	c, err := openCatalog(mem, "a/catalog")
	if err != nil {
		t.Fatal(err)
	}
	x := Open(c, mem, copyDirs, quiet)
	if err := commit(c, rng, 5); err != nil {
		t.Fatal(err)
	}
	x.Update(false)
	want, err := contents(c)
	if err = errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	restore := func(fs vfs.FS) error { return Find(fs, copyDirs, quiet)[0].Restore("a/catalog") }
	if err := restore(crashingRemoval{mem}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if _, err := mem.Stat("a/catalog"); err == nil && catalog.Head(mem, "a/catalog") == nil {
		t.Error("a part of the old catalog is left")
	}
	if err := restore(mem); err != nil { // as the next process does
		t.Fatal(err)
	}
	if c, err = openCatalog(mem, "a/catalog"); err != nil {
		t.Fatal(err)
	}
	now, err := contents(c)
	if err = errors.Join(err, c.Close()); err != nil || now != want {
		t.Errorf("the catalog has %q, want %q: %v", now, want, err)
	}
	if names, err := mem.List("a"); err != nil || len(names) != 1 {
		t.Errorf("left are %v, %v", names, err)
	}
}
