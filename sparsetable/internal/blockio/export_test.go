package blockio

import "golang.org/x/sys/unix"

// RefuseRings makes io_uring fail with an error, as the seccomp profiles of containers do, until
// the returned function is called.
func RefuseRings(err error) (restore func()) {
	before := makeRing
	makeRing = func(int) (*ring, error) { return nil, err }
	return func() { makeRing = before }
}

// LimitThreads limits how many more threads the process may start (-1: no limit), until the
// returned function is called.
func LimitThreads(free int) (restore func()) {
	before := freeThreads
	freeThreads = func() int { return free }
	return func() { freeThreads = before }
}

// FillDisk makes direct writes of the probe fail as on a full disk, until the returned function is
// called.
func FillDisk() (restore func()) {
	before := openDirect
	openDirect = func(path string, flags int) (int, error) {
		if flags&unix.O_RDWR != 0 {
			return openRetry("/dev/full", flags)
		}
		return before(path, flags)
	}
	return func() { openDirect = before }
}

// RefuseDirect makes file systems refuse O_DIRECT, as tmpfs did until Linux 6.6, until the returned
// function is called.
func RefuseDirect() (restore func()) {
	before := openDirect
	openDirect = func(string, int) (int, error) { return -1, unix.EINVAL }
	return func() { openDirect = before }
}
