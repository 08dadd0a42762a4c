package modelfiles

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"aibox/sparsetable"
)

const (
	// maxIndexFiles is the largest number of files of an index.
	maxIndexFiles = 32
	// maxIndexChanges bounds the files with an index's changes, relative to the file with all of
	// it. When they exceed it, a full index is written anew, which makes up a quarter of the
	// uploaded bytes of indexes.
	maxIndexChanges = 4
)

// Indexes writes the indexes of the snapshots of a run, which are moved to another machine one
// after the other. Each index adds only what has changed since an earlier one: a table's index is a
// few bytes for each of its rows, far more than a minute of training changes.
//
//	table/pages-5d0c…-0   all pages of snapshot 40
//	table/pages-5d0c…-1   those that changed until snapshot 41
//	table/pages-5d0c…-2   those that changed after that until snapshot 43
//	table/index-43        the names of the three
//
// The files have no names on this machine. An Indexes belongs to one open table.
type Indexes struct {
	dir   string                 // directory of the files
	token string                 // random, in the names of the files
	of    map[uint64][]indexFile // the snapshots whose indexes were added last
	open  []indexFile

	written int // number of files
}

// indexFile is a file with pages of an index.
type indexFile struct {
	File
	snapshot uint64
	file     *os.File
}

// NewIndexes returns an Indexes for the table of a run whose generation is in the directory gen.
func NewIndexes(gen string) *Indexes {
	var token [8]byte
	_, _ = rand.Read(token[:]) // it never fails
	return &Indexes{dir: gen, token: hex.EncodeToString(token[:]), of: make(map[uint64][]indexFile)}
}

// add adds the indexes of snapshots to the files of p, which must be closed before the next call.
func (x *Indexes) add(p *Held, tables map[uint64]*sparsetable.SnapshotFiles) error {
	ids := slices.Sorted(maps.Keys(tables))
	for _, id := range ids {
		if _, ok := x.of[id]; !ok {
			files, err := x.write(id, tables[id].WriteIndex)
			if err != nil {
				return err
			}
			x.of[id] = files
		}
	}
	maps.DeleteFunc(x.of, func(id uint64, _ []indexFile) bool { return !slices.Contains(ids, id) })
	added := map[string]bool{}
	for _, id := range ids {
		var list strings.Builder
		for _, f := range x.of[id] {
			fmt.Fprintln(&list, f.Name)
			if !added[f.Name] {
				p.Files, added[f.Name] = append(p.Files, f.File), true
			}
		}
		data := bytes.NewReader([]byte(list.String()))
		p.Files = append(p.Files, File{
			Name: fmt.Sprintf("%s-%d", Index, id), Bytes: data.Size(),
			Open: func() (sparsetable.OpenFile, error) { return keptOpen{data}, nil },
		})
	}
	return x.closeUnused()
}

// write returns the files of a snapshot's index. It writes the last of them.
func (x *Indexes) write(id uint64, write func(w io.Writer, since uint64) error) ([]indexFile, error) {
	files := x.before(id)
	since := uint64(0)
	if len(files) > 0 {
		since = files[len(files)-1].snapshot
	}
	f, err := TempFile(x.dir)
	if err != nil {
		return nil, err
	}
	if err := write(f, since); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	name := fmt.Sprintf("%s%s-%d", pages, x.token, x.written)
	x.written++
	written := indexFile{File{Name: name, Bytes: info.Size(), Unique: true, Open: func() (sparsetable.OpenFile, error) { return keptOpen{f}, nil }}, id, f}
	x.open = append(x.open, written)
	return append(files, written), nil
}

// before returns the files of the newest snapshot before id, or those of them that another one may
// follow.
func (x *Indexes) before(id uint64) []indexFile {
	var last uint64
	for other := range x.of {
		if other < id {
			last = max(last, other)
		}
	}
	files := slices.Clone(x.of[last])
	bytes := int64(0)
	for _, f := range files {
		bytes += f.Bytes
	}
	switch {
	case len(files) > 0 && bytes > (1+maxIndexChanges)*files[0].Bytes:
		return nil
	case len(files) == maxIndexFiles:
		return files[:1]
	}
	return files
}

// closeUnused closes the files that no index uses any more.
func (x *Indexes) closeUnused() error {
	used := map[string]bool{}
	for _, files := range x.of {
		for _, f := range files {
			used[f.Name] = true
		}
	}
	var errs []error
	x.open = slices.DeleteFunc(x.open, func(f indexFile) bool {
		if !used[f.Name] {
			errs = append(errs, f.file.Close())
		}
		return !used[f.Name]
	})
	return errors.Join(errs...)
}

// Close closes all files.
func (x *Indexes) Close() error {
	clear(x.of)
	return x.closeUnused()
}

// ErrName says that a list contains something other than names of files.
var ErrName = errors.New("is not a valid name for a file of an index")

// IndexFiles returns the paths of the files of an index: those that the file at the given path
// lists, or that file itself.
func IndexFiles(at string) ([]string, error) {
	f, err := os.Open(at)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	list, err := io.ReadAll(io.LimitReader(f, maxIndexFiles*1024))
	if err != nil || !bytes.HasPrefix(list, []byte(pages)) {
		return []string{at}, err
	}
	var out []string
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSuffix(name, "\n")
		if rest, ok := strings.CutPrefix(name, Table+"/"); !ok || rest != path.Base(rest) {
			return nil, fmt.Errorf("%q %w", name, ErrName)
		}
		out = append(out, filepath.Join(filepath.Dir(at), FlatName(name)))
	}
	return out, nil
}
