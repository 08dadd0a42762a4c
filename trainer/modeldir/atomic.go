package modeldir

import (
	"errors"
	"io"
	"os"

	"aibox/internal/atomicfile"
)

// beforeChange is called before each change of files that follows from a commit or a
// rollback, by tests that end the process there.
var beforeChange = func(operation, path string) {}

// writeFile replaces the contents of path by what write produces: after a failure or a
// crash, path has either all of it or is unchanged.
func writeFile(path string, write func(io.Writer) error) error {
	beforeChange("create", path+".tmp")
	f, err := atomicfile.Create(path, path+".tmp", os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		beforeChange("rename", path)
		err = f.Commit()
	}
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	return nil
}

// WriteFile replaces path by data, atomically and durably.
func WriteFile(path string, data []byte) error {
	return writeFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func syncDir(dir string) error { return atomicfile.SyncDir(dir) }

// removeAll is os.RemoveAll.
func removeAll(path string) error {
	beforeChange("remove", path)
	return os.RemoveAll(path)
}

// rename is os.Rename.
func rename(from, to string) error {
	beforeChange("rename", to)
	return os.Rename(from, to)
}
