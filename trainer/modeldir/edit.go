package modeldir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Edit replaces the snapshot of a committed model's table by one of the same
// rows. It holds the directory's lock until Close.
type Edit struct {
	model *Model
	lock  *os.File
}

// Edit begins to edit m, which must still be the model of its directory.
func (m *Model) Edit() (*Edit, error) {
	lock, err := lockDir(m.Dir)
	if err != nil {
		return nil, err
	}
	now, err := readManifest(m.Dir)
	if err == nil && *now != m.Manifest {
		err = fmt.Errorf("model directory %s: %w: it was written meanwhile; try again", m.Dir, ErrLocked)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Edit{m, lock}, nil
}

// SetTableSnapshot durably makes the snapshot id of the table part of the model. The
// snapshot must have the model's TableRecord and rows; the snapshot before it can then
// be dropped.
func (e *Edit) SetTableSnapshot(id uint64) error {
	next := e.model.Manifest
	next.TableSnapshot = id
	data, err := json.MarshalIndent(&next, "", "  ")
	if err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(e.model.Dir, ManifestName), append(data, '\n')); err != nil {
		return fmt.Errorf("committing the model: %w", err)
	}
	e.model.Manifest = next
	return nil
}

// Close releases the lock.
func (e *Edit) Close() error { return e.lock.Close() }
