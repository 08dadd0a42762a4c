package blockio

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"aibox/internal/diskfault"
)

// osFile is a file of an osDevice. Its descriptor is closed after Close was called and every read
// submitted before has ended. If the descriptor were closed while a read is queued, it could belong
// to another file when the read starts.
type osFile struct {
	dev  *osDevice
	name string
	fd   int
	// refs is 1 for the open file plus 1 for each read in flight; 0: the descriptor is closed.
	refs   atomic.Int64
	closed atomic.Bool
}

func (f *osFile) Name() string { return f.name }

// acquire takes a reference, unless the file is closed.
func (f *osFile) acquire() error {
	for !f.closed.Load() {
		n := f.refs.Load()
		if n == 0 {
			break
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return nil
		}
	}
	return fmt.Errorf("%w: file %s", ErrClosed, f.dev.path(f.name))
}

// release drops a reference and closes the descriptor with the last one.
func (f *osFile) release() {
	if f.refs.Add(-1) == 0 {
		// An error of close loses nothing: what must be durable was synced.
		_ = unix.Close(f.fd)
	}
}

func (f *osFile) Close() error {
	if f.closed.Swap(true) {
		return fmt.Errorf("%w: file %s", ErrClosed, f.dev.path(f.name))
	}
	f.release()
	return nil
}

// hold acquires the file for a synchronous call and checks the buffer.
func (f *osFile) hold(buf []byte, offset int64) error {
	if err := CheckAligned(f.dev.unit, buf, offset); err != nil {
		return err
	}
	return f.acquire()
}

// fault returns the error that a test injects for an operation, or nil.
func (f *osFile) fault(operation string) error {
	if !diskfault.On() {
		return nil
	}
	return diskfault.At(operation, f.dev.path(f.name))
}

func (f *osFile) fail(op string, n int, offset int64, err error) error {
	return f.dev.failed(op, n, offset, f.name, err)
}

func (f *osFile) ReadAt(buf []byte, offset int64) (int, error) {
	if err := f.hold(buf, offset); err != nil {
		return 0, f.fail("read", len(buf), offset, err)
	}
	defer f.release()
	if err := f.fault("read"); err != nil {
		return 0, err
	}
	n, err := preadFull(f.fd, buf, offset, f.dev.unit)
	f.dev.stats.reads.Add(1)
	f.dev.stats.readBytes.Add(uint64(n))
	if err == io.ErrUnexpectedEOF {
		return n, io.EOF
	}
	if err != nil {
		return n, f.fail("read", len(buf), offset, err)
	}
	return n, nil
}

// preadFull reads all of buf from a device with that unit. If the file ends before that, it returns
// io.ErrUnexpectedEOF.
func preadFull(fd int, buf []byte, offset int64, unit int) (int, error) {
	n := 0
	for n < len(buf) {
		k, err := unix.Pread(fd, buf[n:], offset+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case k == 0:
			return n, io.ErrUnexpectedEOF
		default:
			if n += k; n%unit != 0 {
				// Only the end of a file ends a read within a block, and direct reads cannot
				// continue from there.
				return n, io.ErrUnexpectedEOF
			}
		}
	}
	return n, nil
}

func (f *osFile) WriteAt(buf []byte, offset int64) (int, error) {
	if err := f.hold(buf, offset); err != nil {
		return 0, f.fail("write", len(buf), offset, err)
	}
	defer f.release()
	if err := f.fault("write"); err != nil {
		return 0, err
	}
	n := 0
	for n < len(buf) {
		k, err := unix.Pwrite(f.fd, buf[n:], offset+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err == nil && k == 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return n, f.fail("write", len(buf), offset, err)
		}
		n += k
	}
	f.dev.stats.writes.Add(1)
	f.dev.stats.writeBytes.Add(uint64(n))
	return n, nil
}

func (f *osFile) Sync() error {
	if err := f.acquire(); err != nil {
		return err
	}
	defer f.release()
	if err := f.fault("sync"); err != nil {
		return err
	}
	for {
		err := unix.Fdatasync(f.fd)
		if err == nil {
			f.dev.stats.syncs.Add(1)
			return nil
		}
		if err != unix.EINTR {
			return &os.PathError{Op: "fdatasync", Path: f.dev.path(f.name), Err: err}
		}
	}
}

func (f *osFile) Size() (int64, error) {
	if err := f.acquire(); err != nil {
		return 0, err
	}
	defer f.release()
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: f.dev.path(f.name), Err: err}
	}
	return st.Size, nil
}
