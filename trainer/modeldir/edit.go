package modeldir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockDir takes the lock of a model directory, until the file is closed.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("model directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w: another `aibox train` is writing it; wait for it or choose another output.model_dir", dir, ErrLocked)
		}
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return lock, nil
}

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

// SetTableSnapshot makes the table's snapshot id the model's, durably. It must
// have the model's TableRecord and its rows; the one before can be dropped then.
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
