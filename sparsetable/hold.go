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
	lock, err := catalog.LockReading(filepath.Join(o.SSD.Dirs[0], catalogDir))
	if err != nil {
		return nil, fmt.Errorf("the table in %s: %w", o.SSD.Dirs[0], tableError(err))
	}
	return lock, nil
}
