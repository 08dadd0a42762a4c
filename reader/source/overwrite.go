package source

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"aibox/internal/errkind"
	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop"
	"aibox/reader/source/internal/listing"
)

// OverwriteError says that an output is one of the inputs, or would be one the next
// time, or that two outputs are the same file.
type OverwriteError struct {
	Output string
	Input  string // "": Twice
	Twice  string // the other output
}

func (e *OverwriteError) Error() string {
	if e.Twice != "" {
		return fmt.Sprintf("the outputs %s and %s are the same file; name two files", e.Output, e.Twice)
	}
	return fmt.Sprintf("the output %s is one of the files that the input %s stands for: writing it would overwrite the input, or it would be read as input the next time; name an output elsewhere", e.Output, e.Input)
}

// ErrorKind sorts the error for exit codes and reports.
func (*OverwriteError) ErrorKind() errkind.Kind { return errkind.Usage }

// RefuseOverwrite fails with an *OverwriteError in three cases: an output is a file that
// the input URIs stand for, possibly by another path or link; an output would match the
// input URIs once it exists; or two outputs are the same file. For an output that is a
// directory, the caller passes the files that are written into it. Other faults of the
// input are not reported. HDFS is not contacted, since a file has only one path there.
func (s *Sources) RefuseOverwrite(ctx context.Context, inputs, outputs []string) error {
	type place struct {
		fs   fsys.FileSystem
		path string
	}
	var written []place
	for _, output := range outputs {
		fs, p, err := s.resolve(output)
		if err != nil {
			return err
		}
		out := place{fs, realPath(fs, p)}
		for j, other := range written {
			if sameSystem(fs, other.fs) && out.path == other.path {
				return &OverwriteError{Output: outputs[j], Twice: output}
			}
		}
		written = append(written, out)
		for _, input := range inputs {
			in, pattern, err := s.resolve(input)
			if err != nil {
				return err
			}
			if !sameSystem(fs, in) {
				continue
			}
			if wouldBeInput(ctx, in, input, pattern, out.path) || isInput(ctx, in, input, pattern, p) {
				return &OverwriteError{Output: output, Input: input}
			}
		}
	}
	return nil
}

// wouldBeInput says whether the input would include a file if that file existed.
func wouldBeInput(ctx context.Context, fs fsys.FileSystem, uri, pattern, file string) bool {
	real := realPath(fs, pattern)
	if _, local := fs.(localFS); local {
		if info, err := os.Stat(pattern); err == nil && !info.IsDir() {
			return file == real // it is a file, so no other file can be below it
		}
	}
	found, err := listing.Expand(ctx, onlyFile(file), uri, real)
	return err == nil && len(found) > 0
}

// isInput says whether a local file exists and is one of those that the input stands
// for, under this name or another.
func isInput(ctx context.Context, fs fsys.FileSystem, uri, pattern, file string) bool {
	if _, local := fs.(localFS); !local {
		return false
	}
	info, err := os.Stat(file)
	if err != nil || info.IsDir() {
		return false
	}
	files, err := listing.Expand(ctx, fs, uri, pattern)
	return err == nil && slices.ContainsFunc(files, func(e fsys.Entry) bool {
		other, err := os.Stat(e.Path)
		return err == nil && os.SameFile(info, other)
	})
}

// sameSystem says whether equal paths are the same file in both. Two clusters of HDFS
// are the same if they share a NameNode's address, since one authority may be a name
// service and the other one of its NameNodes.
func sameSystem(a, b fsys.FileSystem) bool {
	ca, isHDFS := a.(*hadoop.Cluster)
	cb, bothHDFS := b.(*hadoop.Cluster)
	if !isHDFS || !bothHDFS {
		return isHDFS == bothHDFS
	}
	return ca.SharesNameNode(cb)
}

// realPath makes a path or pattern absolute and resolves the links in the part before
// the pattern, as far as that exists.
func realPath(fs fsys.FileSystem, p string) string {
	if _, local := fs.(localFS); !local {
		return hadoop.CleanPath(p)
	}
	if !filepath.IsAbs(p) {
		if wd, err := os.Getwd(); err == nil {
			p = wd + "/" + p
		}
	}
	known := p
	if _, err := os.Lstat(p); err != nil && listing.HasGlob(p) { // a path that exists is not a pattern
		known = p[:strings.LastIndexByte(p[:strings.IndexAny(p, listing.GlobSigns)], '/')]
	}
	rest := p[len(known):]
	for {
		if real, err := filepath.EvalSymlinks(known + "/"); err == nil {
			return path.Clean(fsys.Join(real, strings.TrimLeft(rest, "/")))
		}
		if real, err := filepath.EvalSymlinks(known); err == nil {
			return path.Clean(fsys.Join(real, strings.TrimLeft(rest, "/")))
		}
		up := strings.LastIndexByte(strings.TrimRight(known, "/"), '/')
		if up < 0 {
			return path.Clean(p)
		}
		known, rest = known[:up], p[up:]
	}
}

// onlyFile is a file system that holds one file.
type onlyFile string

func (o onlyFile) Stat(_ context.Context, p string) (fsys.Entry, error) {
	switch p = path.Clean(p); {
	case p == string(o):
		return fsys.Entry{Path: p}, nil
	case o.below(p):
		return fsys.Entry{Path: p, Dir: true}, nil
	}
	return fsys.Entry{}, &Error{Op: "open", URI: p, Kind: ErrNotFound}
}

func (o onlyFile) List(ctx context.Context, dir string) ([]fsys.Entry, error) {
	if dir = path.Clean(dir); !o.below(dir) {
		return nil, &Error{Op: "list", URI: dir, Kind: ErrNotFound}
	}
	name, _, _ := strings.Cut(strings.TrimLeft(strings.TrimPrefix(string(o), dir), "/"), "/")
	e, err := o.Stat(ctx, fsys.Join(dir, name))
	return []fsys.Entry{e}, err
}

// below says whether the file is in the directory or in one below it.
func (o onlyFile) below(dir string) bool {
	return strings.HasPrefix(string(o), strings.TrimSuffix(dir, "/")+"/")
}
