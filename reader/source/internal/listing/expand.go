package listing

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"aibox/reader/source/internal/fsys"
)

// Lister is what Expand needs of a fsys.FileSystem.
type Lister interface {
	Stat(ctx context.Context, path string) (fsys.Entry, error)
	List(ctx context.Context, dir string) ([]fsys.Entry, error)
}

// Expand lists the files that the path p of a URI stands for, which may be a file, a directory or a
// pattern, in byte order of their paths.
func Expand(ctx context.Context, fs Lister, uri, p string) ([]fsys.Entry, error) {
	var matches []fsys.Entry
	if HasGlob(p) {
		// A file may be called "data[1].csv": a path that exists is not a pattern.
		if e, err := fs.Stat(ctx, p); err == nil {
			matches = []fsys.Entry{e}
		} else if !errors.Is(err, fsys.ErrNotFound) {
			return nil, err
		} else {
			pattern, err := compileGlob(p)
			if err != nil {
				return nil, &fsys.Error{Op: "list", URI: uri, Kind: fsys.ErrNotFound, Err: err}
			}
			if matches, err = pattern.match(ctx, fs); err != nil {
				return nil, err
			}
			if len(matches) == 0 {
				return nil, &fsys.Error{Op: "list", URI: uri, Kind: fsys.ErrNotFound,
					Hint: "no file matches the pattern"}
			}
		}
	} else {
		e, err := fs.Stat(ctx, p)
		if err != nil {
			return nil, err
		}
		matches = []fsys.Entry{e}
	}

	var files []fsys.Entry
	for _, m := range matches {
		var err error
		if files, err = appendFiles(ctx, fs, files, m); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, &fsys.Error{Op: "list", URI: uri, Kind: fsys.ErrNotFound,
			Hint: "the directory holds no file; files whose names start with . or _ are ignored"}
	}
	slices.SortStableFunc(files, func(a, b fsys.Entry) int { return strings.Compare(a.Path, b.Path) })
	// ** may match a directory and one within it.
	return slices.CompactFunc(files, func(a, b fsys.Entry) bool { return a.Path == b.Path }), nil
}

// appendFiles adds e, or all files below it.
func appendFiles(ctx context.Context, fs Lister, files []fsys.Entry, e fsys.Entry) ([]fsys.Entry, error) {
	if e.Fault != nil {
		return nil, e.Fault
	}
	if !e.Dir {
		return append(files, e), nil
	}
	children, err := fs.List(ctx, e.Path)
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		if isHidden(path.Base(c.Path)) {
			continue
		}
		if files, err = appendFiles(ctx, fs, files, c); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}
