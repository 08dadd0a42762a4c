package sparsetable

import (
	"fmt"
	"io"
	"path/filepath"

	"aibox/sparsetable/internal/catalog"
)

// Hold keeps others from writing the table in the directories of o until the result
// is closed, as an open table that is read does. ErrInUse: somebody writes it. A
// table in memory is read at once, when it is opened, and needs no holding.
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
