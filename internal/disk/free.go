package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// Free is how many bytes the file system of a directory has left for this process.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if err == nil {
			return freeOf(&st), nil
		}
		if err != unix.EINTR {
			return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
		}
	}
}

// freeOf is the free space in the figures of a file system. They count in units of Frsize. Bsize is
// the size of a transfer, which some file systems, such as directories that a virtual machine
// shares with its host, have made 256 times larger.
func freeOf(st *unix.Statfs_t) int64 {
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	return int64(st.Bavail) * unit
}
