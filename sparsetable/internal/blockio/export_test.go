package blockio

import "golang.org/x/sys/unix"

// RefuseRings makes the kernel refuse io_uring, as seccomp profiles of containers
// do, until the result is called.
func RefuseRings() (restore func()) {
	before := makeRing
	makeRing = func(int) (*ring, error) { return nil, unix.EPERM }
	return func() { makeRing = before }
}

// RefuseDirect makes file systems refuse O_DIRECT, as tmpfs did until Linux 6.6,
// until the result is called.
func RefuseDirect() (restore func()) {
	before := openDirect
	openDirect = func(string, int) (int, error) { return -1, unix.EINVAL }
	return func() { openDirect = before }
}
