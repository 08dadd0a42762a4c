package sparsetable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/catalog"
)

// Hold prevents that the table in the directories of o is opened for writing until
// the result is closed, just as a table that is open for reading does. It returns
// ErrInUse where the table is open for writing. Where the table's catalog is lost, it holds the
// copies of that. A table of KindMemory is read
// completely by Open, so for it Hold does nothing.
func Hold(o Options) (io.Closer, error) {
	o.ensureDefaults()
	if o.Kind != KindSSD {
		return io.NopCloser(nil), nil
	}
	d := &directories{opts: o}
	if err := d.orderDirs(nil); err != nil {
		return nil, err
	}
	dir := d.opts.SSD.Dirs[0]
	path := filepath.Join(dir, catalogDir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if held, err := holdCopies(d.opts.SSD.Dirs); err != nil || len(held) > 0 {
			if _, e := os.Stat(path); err == nil && errors.Is(e, fs.ErrNotExist) {
				return held, nil
			}
			// A process that writes is making a catalog of a copy, or has made it.
			if err := errors.Join(err, held.Close()); err != nil {
				return nil, err
			}
		}
	}
	lock, err := catalog.LockReading(path)
	if err != nil {
		return nil, fmt.Errorf("the table in %s: %w", dir, apierr.Of(err))
	}
	return lock, nil
}

// holds are several locks.
type holds []io.Closer

func (h holds) Close() (err error) {
	for _, lock := range h {
		err = errors.Join(err, lock.Close())
	}
	return err
}

// holdCopies locks the copies of catalogs in directories.
func holdCopies(dirs []string) (held holds, err error) {
	for _, path := range copiesIn(dirs) {
		lock, err := catalog.LockReading(path)
		if err != nil {
			return held, fmt.Errorf("the table in %s: %w", filepath.Dir(path), apierr.Of(err))
		}
		held = append(held, lock)
	}
	return held, nil
}
