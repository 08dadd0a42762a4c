package tabledirs

import (
	"os"
	"path/filepath"
)

// Place identifies a directory independently of the name by which it was given.
type Place struct {
	path string      // absolute, without symbolic links; "": no directory was given
	info os.FileInfo // nil if the directory does not exist
}

// Is reports whether two places are the same directory.
func (p Place) Is(q Place) bool {
	return q.path != "" && (p.path == q.path || p.info != nil && q.info != nil && os.SameFile(p.info, q.info))
}

// PlaceOf resolves the symbolic links in dir, as far as dir exists.
func PlaceOf(dir string) Place {
	path, err := filepath.Abs(dir)
	if err != nil {
		return Place{path: filepath.Clean(dir)}
	}
	for there, rest := path, ""; ; there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest) {
		if found, err := filepath.EvalSymlinks(there); err == nil {
			path = filepath.Join(found, rest)
			break
		}
		if there == filepath.Dir(there) {
			break
		}
	}
	p := Place{path: path}
	if info, err := os.Stat(path); err == nil {
		p.info = info
	}
	return p
}
