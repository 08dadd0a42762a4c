package catalogcopy

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/internal/diskfault"
	"aibox/internal/panics"
	"aibox/sparsetable/internal/catalog"
)

// Copies are the copies of an open catalog. A nil *Copies has none.
type Copies struct {
	catalog *catalog.Catalog
	log     *slog.Logger
	written atomic.Int64

	mu     sync.Mutex
	number uint64 // of the last Update
	all    []*oneCopy
	sums   map[string]copiedTable // of the tables of the last Update
}

// oneCopy is the copy in one directory.
type oneCopy struct {
	fs     vfs.FS
	dir    string
	tables map[string]copiedTable // tables that it is known to have
	failed bool                   // the last Update of this copy failed
}

// Open makes the copies of a catalog that is open for writing, or brings them up to date, in
// directories other than the catalog's. It reports a copy that cannot be written to log.
func Open(c *catalog.Catalog, fs vfs.FS, dirs []string, log *slog.Logger) *Copies {
	if len(dirs) == 0 {
		return nil
	}
	fs = withFaults(fs)
	x := &Copies{catalog: c, log: log, sums: map[string]copiedTable{}}
	for _, dir := range dirs {
		one := &oneCopy{fs: fs, dir: fs.PathJoin(dir, DirName(c.Format().TableID)), tables: map[string]copiedTable{}}
		if have, err := readCopy(fs, one.dir); err == nil {
			x.number = max(x.number, have.Number)
			for _, t := range have.Tables {
				one.tables[t.Name] = t
			}
		}
		x.all = append(x.all, one)
	}
	x.Update(true)
	return x
}

// withFaults returns a file system whose operations fail as a test specifies.
func withFaults(fs vfs.FS) vfs.FS {
	if fs == nil {
		fs = vfs.Default
	}
	if diskfault.On() {
		fs = catalog.FaultyFS(fs)
	}
	return fs
}

// WrittenBytes is the number of bytes written to the copies.
func (x *Copies) WrittenBytes() int64 {
	if x == nil {
		return 0
	}
	return x.written.Load()
}

// Update brings the copies up to date. dropped says that the caller is about to delete files that
// the catalog needed until now: a copy that cannot be updated then becomes invalid. Otherwise it
// stays as it was.
func (x *Copies) Update(dropped bool) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.number++
	err := x.catalog.WithContents(func(c catalog.Contents) error {
		f, err := x.describe(c)
		if err != nil {
			return err
		}
		var done sync.WaitGroup
		for _, one := range x.all {
			done.Go(func() {
				defer panics.Exit("copying the catalog of the table")
				x.ended(one, one.bringUpToDate(c, f, &x.written), dropped)
			})
		}
		done.Wait()
		return nil
	})
	if err != nil {
		for _, one := range x.all {
			x.ended(one, err, dropped)
		}
	}
}

// describe makes the file COPY. It reads the tables that are new since the last time.
func (x *Copies) describe(c catalog.Contents) (*copyFile, error) {
	f := &copyFile{Number: x.number, Small: c.Small}
	sums := map[string]copiedTable{}
	for _, name := range c.Tables {
		have, ok := x.sums[name]
		if !ok {
			sum, bytes, err := checksum(c.FS, c.FS.PathJoin(c.Dir, name), io.Discard)
			if err != nil {
				return nil, err
			}
			have = copiedTable{name, bytes, sum}
		}
		sums[name] = have
		f.Tables = append(f.Tables, have)
	}
	x.sums = sums
	return f, nil
}

// ended records and logs the outcome of updating a copy.
func (x *Copies) ended(one *oneCopy, err error, dropped bool) {
	switch {
	case err == nil && one.failed:
		x.log.Info("the copy of the table's catalog is up to date again", "dir", one.dir)
	case err != nil && !one.failed:
		x.log.Warn("a copy of the table's catalog could not be written: until it is, losing the directory with the catalog may mean losing the newest snapshot, or the table", "dir", one.dir, "error", err)
	}
	one.failed = err != nil
	if err != nil && dropped {
		_ = one.fs.Remove(one.fs.PathJoin(one.dir, copyName)) // the copy's disk may have failed
		clear(one.tables)
	}
}

func (one *oneCopy) bringUpToDate(c catalog.Contents, f *copyFile, written *atomic.Int64) error {
	fs := one.fs
	if _, err := fs.Stat(one.dir); err != nil {
		clear(one.tables)
		if err := fs.MkdirAll(one.dir, 0o755); err != nil {
			return err
		}
		if err := catalog.SyncDir(fs, fs.PathDir(one.dir)); err != nil {
			return err
		}
	}
	lock := fs.PathJoin(one.dir, lockName)
	if _, err := fs.Stat(lock); err != nil {
		if err := writeBytes(fs, lock, nil); err != nil {
			return err
		}
	}
	tables := map[string]copiedTable{}
	for _, t := range f.Tables {
		path := fs.PathJoin(one.dir, t.Name)
		if info, err := fs.Stat(path); err != nil || info.Size() != t.Bytes || one.tables[t.Name] != t {
			if err := copyTable(c, fs, path, t); err != nil {
				return err
			}
			written.Add(t.Bytes)
		}
		tables[t.Name] = t
	}
	b, err := f.encode()
	if err != nil {
		return err
	}
	tmp := fs.PathJoin(one.dir, copyName+tmpSuffix)
	if err := writeBytes(fs, tmp, b); err != nil {
		return err
	}
	written.Add(int64(len(b)))
	if err := catalog.SyncDir(fs, one.dir); err != nil { // the tables' names must be durable before that of COPY
		return err
	}
	if err := fs.Rename(tmp, fs.PathJoin(one.dir, copyName)); err != nil {
		return err
	}
	if err := catalog.SyncDir(fs, one.dir); err != nil {
		return err
	}
	one.tables = tables
	return one.removeOthers()
}

// copyTable copies a table, which must still have its known checksum.
func copyTable(c catalog.Contents, fs vfs.FS, path string, t copiedTable) error {
	return writeDurably(fs, path, func(w io.Writer) error {
		from := c.FS.PathJoin(c.Dir, t.Name)
		sum, bytes, err := checksum(c.FS, from, cloning{w})
		if err == nil && (sum != t.CRC || bytes != t.Bytes) {
			err = fmt.Errorf("%s has changed: it has %d bytes with the checksum %08x, but had %d with %08x", from, bytes, sum, t.Bytes, t.CRC)
		}
		return err
	})
}

// cloning writes copies of its input, because a file system for tests scrambles the bytes that were
// written to it.
type cloning struct{ io.Writer }

func (w cloning) Write(b []byte) (int, error) { return w.Writer.Write(slices.Clone(b)) }

// removeOthers deletes the tables that the copy does not need.
func (one *oneCopy) removeOthers() error {
	names, err := one.fs.List(one.dir)
	for _, name := range names {
		if _, used := one.tables[name]; !used && strings.HasSuffix(name, ".sst") {
			err = errors.Join(err, one.fs.Remove(one.fs.PathJoin(one.dir, name)))
		}
	}
	return err
}
