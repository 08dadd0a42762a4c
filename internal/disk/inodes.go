package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// InodesLeft describes the file system on which a write failed with err for lack of space, if it
// has probably run out of inodes rather than bytes; otherwise it returns "". The files of the
// failed write may have been deleted by now, so a few inodes may be free.
func InodesLeft(err error) string {
	var at *fs.PathError
	if !errors.Is(err, unix.ENOSPC) || !errors.As(err, &at) {
		return ""
	}
	path := at.Path
	if real, err := filepath.EvalSymlinks(path); err == nil { // standard output is /dev/stdout, a link to a file elsewhere
		path = real
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeDevice != 0 { // such as /dev/full
		return ""
	}
	dir := Nearest(filepath.Dir(path))
	var st unix.Statfs_t
	// Some file systems have no table of inodes, so that Files is 0.
	if unix.Statfs(dir, &st) != nil || st.Files == 0 || share(st.Ffree, st.Files) >= share(st.Bavail, st.Blocks) {
		return ""
	}
	return fmt.Sprintf("the file system of %s has %d of %d inodes left", dir, st.Ffree, st.Files)
}

func share(part, of uint64) float64 { return float64(part) / float64(max(of, 1)) }
