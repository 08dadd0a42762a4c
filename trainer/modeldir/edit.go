package modeldir

import (
	"errors"
	"fmt"
	"os"
)

// Edit replaces the snapshot of a committed model's table by another one with the same rows. It
// holds the directory's lock until Close.
type Edit struct {
	model *Model
	lock  *os.File
}

// Edit begins to edit m, which must not have changed since it was opened.
func (m *Model) Edit() (*Edit, error) {
	lock, err := lockDir(m.Dir)
	if err != nil {
		return nil, err
	}
	now, err := manifestOf(m.Dir, m.Generation)
	if err == nil && *now != m.Manifest {
		err = fmt.Errorf("model directory %s: %w: another process has changed it meanwhile; try again", m.Dir, ErrLocked)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Edit{m, lock}, nil
}

// SetTableSnapshot durably makes the snapshot id of the table part of the model. The snapshot must
// have the model's TableRecord and rows. The snapshot before it can then be dropped.
func (e *Edit) SetTableSnapshot(id uint64) error {
	next := e.model.Manifest
	next.TableSnapshot = id
	if top, err := readManifest(e.model.Dir); err == nil && top.Generation == next.Generation {
		if err := publish(e.model.Dir, &next); err != nil {
			return err
		}
	}
	// This copy is not needed until another generation becomes the model.
	if err := next.writeOwn(e.model.Dir); err != nil {
		return fmt.Errorf("recording the snapshot of the table: %w", err)
	}
	e.model.Manifest = next
	return nil
}

// Close releases the lock.
func (e *Edit) Close() error { return e.lock.Close() }
