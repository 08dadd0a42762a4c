package modeldir

import (
	"errors"
	"io"
	"os"

	"aibox/internal/atomicfile"
)

// writeFile replaces the contents of path by what write produces: after a failure or a
// crash, path has either all of it or is unchanged.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := atomicfile.Create(path, path+".tmp", os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
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
