package catalog

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Contents are the files that a catalog consists of. A directory with exactly these files is the
// same catalog.
type Contents struct {
	FS     vfs.FS
	Dir    string
	Small  map[string][]byte // by name: HEAD, the current manifest and options of Pebble, and its markers
	Tables []string          // names of the sorted tables, which never change
}

// WithContents calls fn with the contents of the catalog. The catalog does not change before fn
// returns.
func (c *Catalog) WithContents(fn func(Contents) error) error {
	c.mu.Lock()
	defer c.unlock()
	if err := c.usableLocked(); err != nil {
		return err
	}
	return c.log.do(func() error {
		all, err := c.contentsLocked()
		if err != nil {
			return c.wrap(err, "list its files")
		}
		return fn(all)
	})
}

func (c *Catalog) contentsLocked() (Contents, error) {
	all := Contents{FS: c.fs, Dir: c.dir, Small: map[string][]byte{}}
	desc, err := pebble.Peek(c.dir, c.fs)
	if err != nil {
		return all, err
	}
	names, err := c.fs.List(c.dir)
	if err != nil {
		return all, err
	}
	for _, name := range names {
		// Pebble deletes the manifests and options of earlier runs in the background.
		current := name == c.fs.PathBase(desc.ManifestFilename) || name == c.fs.PathBase(desc.OptionsFilename)
		if name != HeadName && !current && !strings.HasPrefix(name, markerPrefix) {
			continue
		}
		if all.Small[name], err = readFile(c.fs, c.fs.PathJoin(c.dir, name)); err != nil {
			return all, err
		}
	}
	levels, err := c.mu.db.SSTables()
	if err != nil {
		return all, err
	}
	for _, level := range levels {
		for _, t := range level {
			if t.Virtual {
				return all, fmt.Errorf("table %s is a part of a file", t.FileNum)
			}
			all.Tables = append(all.Tables, fmt.Sprintf("%s.sst", t.FileNum))
		}
	}
	return all, nil
}

func readFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}
