package blockio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// capabilities is the result of probing a directory.
type capabilities struct {
	unit   int
	direct bool
}

// probe tries direct writes and reads in a temporary file.
func probe(dir string, opts Options) (capabilities, error) {
	buffered := capabilities{unit: max(minUnit, opts.UnitBytes)}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return capabilities{}, fmt.Errorf("blockio: %s is not writable: %w", dir, err)
	}
	defer func() {
		// The file does no harm if it stays.
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	if opts.Direct == Off {
		return buffered, nil
	}
	first := max(minUnit, opts.UnitBytes, alignmentOf(int(f.Fd())))
	var cause error
	for unit := first; unit <= maxUnit; unit *= 2 {
		if cause = tryDirect(f.Name(), unit); cause == nil {
			return capabilities{unit: unit, direct: true}, nil
		}
		if !errors.Is(cause, unix.EINVAL) {
			break
		}
	}
	if IsFull(cause) { // there may be space later, and existing files can be read now
		if found, err := probeReading(dir, opts); err == nil && found.direct {
			return found, nil
		}
	}
	return withoutDirect(dir, opts, first, cause)
}

// withoutDirect returns the capabilities of a directory in which direct I/O does not work with
// units of first bytes or more. cause is the error, or nil if the device wants larger units. If the
// options require direct I/O, it returns an error.
func withoutDirect(dir string, opts Options, first int, cause error) (capabilities, error) {
	if cause == nil {
		cause = fmt.Errorf("the device needs an alignment of %d bytes", first)
	}
	if opts.Direct == On {
		return capabilities{}, fmt.Errorf("blockio: direct I/O does not work in %s: %w", dir, cause)
	}
	opts.Logger.Warn("direct I/O does not work here, so reads and writes go through the page cache, which no memory budget includes",
		"dir", dir, "cause", cause)
	return capabilities{unit: max(minUnit, opts.UnitBytes)}, nil
}

// alignmentOf asks the file system for the alignment of direct I/O. It returns 0 if the system does
// not tell (Linux before 6.1); then the caller has to try.
func alignmentOf(fd int) int {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st); err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return 0
	}
	return int(max(st.Dio_mem_align, st.Dio_offset_align))
}

// tryDirect writes and reads one unit at an odd multiple of unit.
func tryDirect(path string, unit int) error {
	return withDirect(path, unix.O_RDWR, unit, func(fd int, buf []byte) error {
		for i := range buf {
			buf[i] = byte(i*7 + 1)
		}
		if n, err := unix.Pwrite(fd, buf, int64(unit)); err != nil || n != unit {
			return fmt.Errorf("write of %d bytes (%d written): %w", unit, n, orShort(err))
		}
		clear(buf)
		if err := readUnit(fd, buf); err != nil {
			return err
		}
		for i := range buf {
			if buf[i] != byte(i*7+1) {
				return fmt.Errorf("byte %d of a block that was just written reads back wrong", i)
			}
		}
		return nil
	})
}

// withDirect opens a file for direct I/O and calls do with a buffer of one unit, whose
// address is aligned to unit but not to twice unit.
func withDirect(path string, flags, unit int, do func(fd int, buf []byte) error) error {
	fd, err := openDirect(path, flags)
	if err != nil {
		return fmt.Errorf("open with O_DIRECT: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	m, err := mapMemory(2 * maxUnit)
	if err != nil {
		return err
	}
	defer unmapMemory(m)
	return do(fd, m[unit:2*unit])
}

// readUnit reads the second unit of a file.
func readUnit(fd int, buf []byte) error {
	if n, err := unix.Pread(fd, buf, int64(len(buf))); err != nil || n != len(buf) {
		return fmt.Errorf("read of %d bytes (%d read): %w", len(buf), n, orShort(err))
	}
	return nil
}

// openDirect opens a file for direct I/O; tests replace it with a function that fails.
var openDirect = func(path string, flags int) (int, error) { return openRetry(path, flags|unix.O_DIRECT) }

// orShort returns err, or an error for a call that transferred too little without an error.
func orShort(err error) error {
	if err == nil {
		return errors.New("short transfer")
	}
	return err
}

// openRetry opens a file, retrying after signals.
func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(filepath.Clean(path), flags|unix.O_CLOEXEC, 0o666)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
