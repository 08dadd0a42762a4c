package outside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"aibox/internal/disk"
	"aibox/internal/filelock"
	"aibox/sparsetable"
)

// OwnerName is the file in a table's directory that names its owner.
const OwnerName = "OWNER.json"

// owner is OWNER.json.
type owner struct {
	ModelDir   string   `json:"model_dir"` // absolute, without symbolic links
	Generation string   `json:"generation"`
	Dirs       []string `json:"dirs"`             // of the table, including this one
	Copies     []string `json:"copies,omitempty"` // other model directories that name the table
}

// readOwner reads who owns dir. It returns nil without an error if that is not recorded.
func readOwner(dir string) (*owner, error) {
	o := new(owner)
	if found, err := readJSON(filepath.Join(dir, OwnerName), o); err != nil || !found {
		return nil, err
	}
	return o, nil
}

func (o *owner) write(dir string) error { return writeJSON(filepath.Join(dir, OwnerName), o) }

// Free deletes directories of one table. It deletes only files that belong to a table, and fails if
// there are others.
func Free(dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	lock, err := lockOther(dirs)
	if err != nil {
		return err
	}
	if lock != nil {
		defer lock.Close()
	}
	disk.BeforeChange("remove", dirs[0])
	if err := sparsetable.Remove(dirs, true); err != nil {
		return err
	}
	for _, dir := range dirs {
		for _, name := range []string{OwnerName + ".tmp", OwnerName} { // a process may have been killed while it wrote the file
			if err := disk.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		real := disk.RealDir(dir)
		if err := os.Remove(real); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s holds something that does not belong to a table: %w", dir, err)
		}
		if real != dir && !disk.Gone(dir) { // dir is a link to the directory
			if err := os.Remove(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockOther keeps the table of dirs from being opened while these are deleted, if its catalog is in
// another one of its directories. It fails with ErrInUse if the table is open.
func lockOther(dirs []string) (lock *os.File, err error) {
	o, err := readOwner(dirs[0])
	if err != nil || o == nil {
		return nil, err
	}
	for _, dir := range o.Dirs {
		if slices.ContainsFunc(dirs, func(d string) bool { return disk.RealDir(d) == disk.RealDir(dir) }) {
			continue
		}
		f, err := filelock.Open(filepath.Join(dir, "catalog", "LOCK"), os.O_RDONLY, 0, filelock.Exclusive)
		if errors.Is(err, filelock.ErrHeld) {
			return nil, fmt.Errorf("%s: %w", dir, sparsetable.ErrInUse)
		}
		if err == nil {
			return f, nil
		} // the directory has no catalog, or does not exist any more
	}
	return nil, nil
}
