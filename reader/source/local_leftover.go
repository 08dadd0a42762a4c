package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"aibox/internal/atomicfile"
	"aibox/internal/filelock"
	"aibox/reader/source/internal/fsys"
)

// A process that is killed while it writes a local file leaves the hidden temporary file behind.
// The next file written to the same directory removes it. A writer holds a lock on its temporary
// file until the file has its name, and the kernel releases the lock when the process ends, so a
// file that can be locked has no writer. On file systems without locks, nothing is removed.

// anyTemp also matches temporary files of versions whose suffix did not tell them from those of other
// programs; these are removed only from directories that no other program writes to.
var anyTemp = regexp.MustCompile(`^\..+\.[0-9a-f]{12}(\.aibox)?\.tmp$`)

// createTemp starts a file at path. The lock shows that the temporary file has a writer; it is nil
// on file systems without locks.
func createTemp(path string, perm fs.FileMode) (file *atomicfile.File, lock *os.File, err error) {
	for {
		temp := fsys.TempName(path)
		if file, err = atomicfile.Create(path, temp, os.O_EXCL, perm); err != nil {
			return nil, nil, err
		}
		lock, taken := lockTemp(temp)
		if !taken {
			return file, lock, nil
		}
		// Somebody who removes leftovers found the file before it was locked.
		if err := file.Abort(); err != nil {
			return nil, nil, err
		}
	}
}

// lockTemp locks a temporary file. taken: another process has locked or removed it. The lock is nil
// if it is taken, or if there are no locks.
func lockTemp(temp string) (lock *os.File, taken bool) {
	lock, err := filelock.Open(temp, os.O_WRONLY, 0, filelock.Exclusive) // NFS locks only files that are open for writing
	return lock, errors.Is(err, filelock.ErrHeld) || errors.Is(err, fs.ErrNotExist)
}

// removeLocalLeftovers removes the temporary files of killed writers whose names match from a
// directory. Failures are ignored, because the next file written there tries again.
func removeLocalLeftovers(dir string, names *regexp.Regexp) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	list, _ := d.Readdirnames(-1) // those that it could read
	for _, name := range list {
		if !names.MatchString(name) {
			continue
		}
		temp := filepath.Join(dir, name)
		if lock, _ := lockTemp(temp); lock != nil {
			_ = os.Remove(temp)
			_ = lock.Close()
		}
	}
}
