package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const tablePrefix = "ingest-"

// table is a sorted table on its way into the database: keys are written in
// ascending order, then it is ingested or aborted.
type table struct {
	fs   vfs.FS
	path string
	w    *sstable.Writer // nil once closed
}

// newTable begins a table; name tells those under way apart.
func (c *Catalog) newTable(name string) (*table, error) {
	path := c.fs.PathJoin(c.dir, tablePrefix+name+tmpSuffix)
	f, err := c.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	format := c.opts.FormatMajorVersion.MaxTableFormat()
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), c.opts.MakeWriterOptions(0, format))
	return &table{fs: c.fs, path: path, w: w}, nil
}

func (t *table) set(key, value []byte) error { return t.w.Set(key, value) }
func (t *table) delete(key []byte) error     { return t.w.Delete(key) }

// ingest syncs the table and makes it part of db, atomically. After an error it
// is not, or ErrFailed has come to pass. The file is gone in any case.
func (t *table) ingest(db *pebble.DB) error {
	w := t.w
	t.w = nil
	err := w.Close() // syncs
	if err == nil {
		err = db.Ingest(context.Background(), []string{t.path}) // removes the file
	}
	if err != nil {
		return errors.Join(err, t.remove())
	}
	return nil
}

// abort removes the table.
func (t *table) abort() error {
	if t.w != nil {
		_ = t.w.Close() // whatever it wrote is removed
		t.w = nil
	}
	return t.remove()
}

func (t *table) remove() error {
	if err := t.fs.Remove(t.path); err != nil {
		return fmt.Errorf("remove %s: %w", t.path, err)
	}
	return nil
}

const (
	// From that many tables on top of the others all are compacted, as each is
	// one more to look at when pages are read.
	compactAfter = 8
	compactBytes = 4 << 20 // garbage that is less matters to nobody
)

// compactLocked merges all tables when those on top are many, or half of what
// all hold is garbage: then a byte compacted is paid for by one committed. What
// was committed does not depend on it, so it only logs errors.
func (c *Catalog) compactLocked() {
	used := c.usedBytesLocked()
	err := c.log.do(func() error {
		m := c.mu.db.Metrics()
		all, rest := m.Total(), m.Levels[len(m.Levels)-1]
		if all.TablesCount-rest.TablesCount < compactAfter && all.TablesSize < 2*used+compactBytes {
			return nil
		}
		return c.mu.db.Compact(context.Background(), []byte{'a'}, []byte{'z' + 1}, false)
	})
	if err != nil {
		c.log.to.Warn("catalog: not compacted", "dir", c.dir, "error", err)
	}
}

// usedBytesLocked estimates what the pages in use take, all being as large as
// those of the snapshot that wrote them are on average.
func (c *Catalog) usedBytesLocked() int64 {
	var used, pageBytes int64
	var before *kept
	count := func(s *kept) {
		own, news := int64(0), int64(0)
		for p, id := range s.versions {
			if id == s.ID {
				own++
			}
			if before == nil || !before.uses(pageVersion{uint32(p), id}) {
				news++
			}
		}
		if own > 0 {
			pageBytes = s.PageBytes / own
		}
		used += news * pageBytes
		before = s
	}
	for _, s := range c.mu.snapshots {
		count(s)
	}
	if c.mu.live != nil && !slices.Contains(c.mu.snapshots, c.mu.live) {
		count(c.mu.live)
	}
	return used
}
