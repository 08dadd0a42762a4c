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

// table is a sorted table that is being written: keys are written in ascending order, and then the
// table is ingested into the database or aborted.
type table struct {
	fs   vfs.FS
	path string
	w    *sstable.Writer // nil once closed
}

// newTable begins a table; name distinguishes tables that are written at the same time.
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

// ingest syncs the table and makes it part of db, atomically. After an error the table is not part
// of db, except that this is unknown after ErrFailed. The file is removed in any case.
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
		_ = t.w.Close() // what it wrote is removed
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
	// If there are compactAfter tables above the lowest level, all tables are compacted, because
	// reading pages has to read each of them.
	compactAfter = 8
	compactBytes = 4 << 20 // less garbage than this is not worth a compaction
)

// compactLocked merges all tables if there are many above the lowest level, or if half of their
// contents is garbage; in that case a compaction writes no more bytes than the commits since the
// last one have written. Committed data does not depend on it, so it only logs errors.
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
		c.log.to.Warn("catalog: it could not be compacted", "dir", c.dir, "error", err)
	}
}

// usedBytesLocked estimates the size of the pages in use. It assumes that each page has the average
// size of the pages of the snapshot that wrote it.
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
