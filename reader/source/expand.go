package source

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Expand lists the files that the URIs stand for, in the order given; the
// matches of one pattern or directory come in byte order of their paths. A URI
// given twice is listed twice.
//
// It fails with ErrNotFound, naming the URIs that are missing or are a pattern or directory
// without a file; and on the first one that cannot be read (ErrPermission), is still being
// written (ErrBeingWritten) or whose HDFS does not answer (ErrUnavailable).
func (s *Sources) Expand(ctx context.Context, uris []string) ([]File, error) {
	var files []File
	var missing []error
	for _, uri := range uris {
		fs, p, err := s.resolve(uri)
		if err != nil {
			return nil, err
		}
		entries, err := expand(ctx, fs, uri, p)
		if errors.Is(err, ErrNotFound) {
			missing = append(missing, err) // the others are named, too
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := fs.check(ctx, entries); err != nil {
			return nil, err
		}
		for _, e := range entries {
			files = append(files, File{
				URI:         fs.uri(e.path),
				Size:        e.size,
				Compression: CompressionOf(e.path),
				ModTime:     e.modTime,
			})
		}
	}
	if len(missing) > maxMissing {
		missing = append(missing[:maxMissing], fmt.Errorf("and %d more of the %d inputs are not found", len(missing)-maxMissing, len(uris)))
	}
	if err := errors.Join(missing...); err != nil {
		return nil, err
	}
	return files, nil
}

// maxMissing is how many inputs that do not exist Expand names.
const maxMissing = 5

// lister is what expand needs of a fileSystem.
type lister interface {
	stat(ctx context.Context, path string) (entry, error)
	list(ctx context.Context, dir string) ([]entry, error)
}

func expand(ctx context.Context, fs lister, uri, p string) ([]entry, error) {
	var matches []entry
	if hasGlob(p) {
		// A file may be called "data[1].csv": a path that exists is not a pattern.
		if e, err := fs.stat(ctx, p); err == nil {
			matches = []entry{e}
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		} else {
			pattern, err := compileGlob(p)
			if err != nil {
				return nil, &Error{Op: "list", URI: uri, Kind: ErrNotFound, Err: err}
			}
			if matches, err = pattern.match(ctx, fs); err != nil {
				return nil, err
			}
			if len(matches) == 0 {
				return nil, &Error{Op: "list", URI: uri, Kind: ErrNotFound,
					Hint: "no file matches the pattern"}
			}
		}
	} else {
		e, err := fs.stat(ctx, p)
		if err != nil {
			return nil, err
		}
		matches = []entry{e}
	}

	var files []entry
	for _, m := range matches {
		var err error
		if files, err = appendFiles(ctx, fs, files, m); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, &Error{Op: "list", URI: uri, Kind: ErrNotFound,
			Hint: "the directory holds no file; files whose names start with . or _ are ignored"}
	}
	slices.SortStableFunc(files, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	// ** may match a directory and one within it.
	return slices.CompactFunc(files, func(a, b entry) bool { return a.path == b.path }), nil
}

// appendFiles adds e, or all files below it.
func appendFiles(ctx context.Context, fs lister, files []entry, e entry) ([]entry, error) {
	if e.fault != nil {
		return nil, e.fault
	}
	if !e.dir {
		return append(files, e), nil
	}
	children, err := fs.list(ctx, e.path)
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		if isHidden(path.Base(c.path)) {
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
