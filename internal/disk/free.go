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

// freeOf returns the free space according to a file system's figures, whose unit is Frsize. Bsize
// is the transfer size, which is 256 times larger on some file systems, such as directories that a
// virtual machine shares with its host.
func freeOf(st *unix.Statfs_t) int64 {
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	return int64(st.Bavail) * unit
}
