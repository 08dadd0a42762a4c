package blockio

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// probeReading is probe without a write: it reads an existing file. If there is none, it cannot
// find out anything, but then there is nothing to read, either.
func probeReading(dir string, opts Options) (capabilities, error) {
	buffered := capabilities{unit: max(minUnit, opts.UnitBytes)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return capabilities{}, fmt.Errorf("blockio: %w", err)
	}
	if opts.Direct == Off {
		return buffered, nil
	}
	for _, e := range entries {
		if st, err := e.Info(); err != nil || !st.Mode().IsRegular() || st.Size() < 2*maxUnit {
			continue
		}
		return probeFile(dir, filepath.Join(dir, e.Name()), opts)
	}
	return buffered, nil
}

// probeFile finds the smallest unit with which a file of two units or more can be read directly.
func probeFile(dir, path string, opts Options) (capabilities, error) {
	fd, err := openRetry(path, unix.O_RDONLY)
	if err != nil {
		return capabilities{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	first := max(minUnit, opts.UnitBytes, alignmentOf(fd))
	_ = unix.Close(fd) // nothing was written
	var cause error
	for unit := first; unit <= maxUnit; unit *= 2 {
		if cause = tryReading(path, unit); cause == nil {
			return capabilities{unit: unit, direct: true}, nil
		}
	}
	return withoutDirect(dir, opts, first, cause)
}

// tryReading reads one unit at an odd multiple of unit.
func tryReading(path string, unit int) error { return withDirect(path, unix.O_RDONLY, unit, readUnit) }
