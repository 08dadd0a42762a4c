package tabledirs

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

// Hold prevents the table from being opened for writing until the result is closed, see
// sparsetable.Hold.
func (d *Set) Hold() (io.Closer, error) {
	if err := d.Order(nil); err != nil {
		return nil, err
	}
	dir := d.Names[0]
	path := filepath.Join(dir, CatalogName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if held, err := holdCopies(d.Names); err != nil || len(held) > 0 {
			if _, e := os.Stat(path); err == nil && errors.Is(e, fs.ErrNotExist) {
				return held, nil
			}
			// A writing process is making a catalog from a copy, or has made it.
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
	for _, path := range CopiesIn(dirs) {
		lock, err := catalog.LockReading(path)
		if err != nil {
			return held, fmt.Errorf("the table in %s: %w", filepath.Dir(path), apierr.Of(err))
		}
		held = append(held, lock)
	}
	return held, nil
}
