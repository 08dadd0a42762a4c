package sparsetable

import (
	"fmt"
	"io"
	"path/filepath"

	"aibox/sparsetable/internal/catalog"
)

// Hold prevents that the table in the directories of o is opened for writing until
// the result is closed, just as a table that is open for reading does. It returns
// ErrInUse where the table is open for writing. A table of KindMemory is read
// completely by Open, so for it Hold does nothing.
func Hold(o Options) (io.Closer, error) {
	o.ensureDefaults()
	if o.Kind != KindSSD {
		return io.NopCloser(nil), nil
	}
	t := &ssd{opts: o}
	if err := t.orderDirs(nil); err != nil {
		return nil, err
	}
	dir := t.opts.SSD.Dirs[0]
	lock, err := catalog.LockReading(filepath.Join(dir, catalogDir))
	if err != nil {
		return nil, fmt.Errorf("the table in %s: %w", dir, tableError(err))
	}
	return lock, nil
}
