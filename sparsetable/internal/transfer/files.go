package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"aibox/internal/diskfault"
	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/tabledirs"
)

// A snapshot can be moved to another machine as files. Those that hold rows are copied unchanged.
// For a table on SSD the index is one more file, which WriteIndex makes from the snapshot, and from
// which RestoreIndex makes a catalog. The files may be copied to other directories, also to another
// number of them: the files of a table are found by their names.

// File is a file of a snapshot. As long as the snapshot exists, the first Bytes bytes do not
// change; the file may have more, which do not belong to the snapshot.
type File struct {
	Name  string // the same in every copy of the table
	Path  string
	Bytes int64
	Open  func() (OpenFile, error)
	// Unique says that the name has a random part, so no other file has it: neither one of another
	// table, nor one that a copy of this table has made. The file only grows.
	Unique bool
}

// OpenFile is a file that is open for reading.
type OpenFile interface {
	io.ReaderAt
	io.Closer
}

// SnapshotFiles are the files of a snapshot of an open table. They stay unchanged until Release,
// even if the snapshot is dropped meanwhile.
type SnapshotFiles struct {
	Files []File
	// WriteIndex writes the index in the form that RestoreIndex reads. If since is the ID of an
	// earlier snapshot that was taken since the table was opened, it writes only what changed after
	// that. It is nil for KindMemory, which has no index. It must not be called after the table was
	// closed, nor after Release.
	WriteIndex func(w io.Writer, since uint64) error
	Release    func() error
}

// OfFile returns the files of a snapshot of a table in memory, which is one open file.
func OfFile(f *os.File) (*SnapshotFiles, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	path := f.Name()
	file := File{Name: filepath.Base(path), Path: path, Bytes: info.Size(), Open: func() (OpenFile, error) { return keptOpen{f}, nil }}
	return &SnapshotFiles{Files: []File{file}, Release: sync.OnceValue(f.Close)}, nil
}

// Files returns the files that hold the rows of the snapshot of a table on SSD. The caller holds
// the table.
func Files(d *tabledirs.Set) ([]File, error) {
	old, err := openCatalog(d)
	if err != nil {
		return nil, apierr.Of(err)
	}
	defer old.Close() // it was only read
	s, err := old.Snapshot(d.SnapshotID)
	if err != nil {
		return nil, apierr.Of(err)
	}
	table, err := tabledirs.TableNumber(old.Format())
	if err != nil {
		return nil, err
	}
	return FilesOf(s, table, d.Names)
}

// FileAt returns the file of a snapshot of a table in memory.
func FileAt(path string) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return []File{{Name: filepath.Base(path), Path: path, Bytes: info.Size(), Open: opening(path)}}, nil
}

func opening(path string) func() (OpenFile, error) {
	return func() (OpenFile, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return copied{f}, nil
	}
}

// copied is a file that is read in order to be copied.
type copied struct{ *os.File }

func (f copied) ReadAt(p []byte, off int64) (int, error) {
	if err := diskfault.At("read to copy", f.Name()); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// keptOpen is a file that its owner closes.
type keptOpen struct{ io.ReaderAt }

func (keptOpen) Close() error { return nil }

// FilesOf returns the files that hold the rows of a snapshot of a table on SSD.
func FilesOf(s catalog.Snapshot, table uint64, dirs []string) (out []File, err error) {
	add := func(name string, bytes int64, unique bool) {
		if err == nil {
			var path string
			path, err = pathIn(dirs, name, bytes)
			out = append(out, File{name, path, bytes, opening(path), unique})
		}
	}
	for _, b := range s.Files {
		add(bucketfile.FileName(table, b.ID, b.Incarnation), b.Bytes, b.Incarnation != 0)
	}
	for _, d := range s.Deltas {
		add(d.Name, d.Bytes, true)
	}
	return out, err
}

// openCatalog opens the catalog of a table for reading, and puts its directory first.
func openCatalog(d *tabledirs.Set) (*catalog.Catalog, error) {
	if err := d.Order(nil); err != nil {
		return nil, err
	}
	c, err := d.OpenCatalog(catalog.Options{Dir: d.CatalogPath(), ReadOnly: true, Logger: d.Logger})
	if errors.Is(err, catalog.ErrNotExist) {
		err = fmt.Errorf("%w: none in %s", contract.ErrNoSnapshot, d.CatalogPath())
	}
	return c, err
}

// pathIn returns the path of a file in one of dirs that has at least that many bytes.
func pathIn(dirs []string, name string, bytes int64) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if info.Size() < bytes {
			return "", &contract.CorruptionError{File: path, Offset: info.Size(), Reason: fmt.Sprintf("the file ends here, but the snapshot needs %d bytes of it", bytes)}
		}
		return path, nil
	}
	return "", fmt.Errorf("%w: %s cannot be found in %s", contract.ErrFiles, name, strings.Join(dirs, ", "))
}

// WriteIndex writes the index of the snapshot of a table on SSD. The caller holds the table.
func WriteIndex(d *tabledirs.Set, w io.Writer) error {
	c, err := openCatalog(d)
	if err != nil {
		return apierr.Of(err)
	}
	pin, err := c.Pin(d.SnapshotID)
	if err == nil {
		err = pin.Write(w, pin.Snapshot(), 0)
	}
	return apierr.Of(errors.Join(err, c.Close()))
}

// RestoreIndex is sparsetable.RestoreIndex for a table in the directories of d.
func RestoreIndex(ctx context.Context, d *tabledirs.Set, indexes ...[]string) (infos []contract.SnapshotInfo, err error) {
	var list []loadedSnapshot
	for _, names := range indexes {
		s, closeAll, err := openIndex(names)
		defer closeAll()
		if err == nil {
			err = checkNames(s, names[len(names)-1])
		}
		if err != nil {
			return nil, apierr.Of(err)
		}
		if len(list) > 0 && list[0].format != s.Format {
			return nil, &contract.CorruptionError{File: names[0], Offset: -1, Reason: "it does not belong to the same table as " + indexes[0][0]}
		}
		list = append(list, loadedSnapshot{s.Snapshot, s.Pages, s.Format})
	}
	format := list[0].format
	slices.SortFunc(list, func(a, b loadedSnapshot) int { return cmp.Compare(a.ID, b.ID) })
	if err := os.RemoveAll(filepath.Join(d.Names[0], tabledirs.CatalogName)); err != nil {
		return nil, err
	}
	infos, err = newCatalog(ctx, d, format, list)
	return infos, apierr.Of(err)
}

// checkNames fails if a snapshot that comes from elsewhere, in the file index, refers to files that
// are not delta files of its table: they would be deleted together with it.
func checkNames(s *catalog.Stream, index string) error {
	table, err := tabledirs.TableNumber(s.Format)
	if err != nil {
		return err
	}
	for _, d := range s.Snapshot.Deltas {
		if !deltafile.IsName(table, d.Name) {
			return &contract.CorruptionError{File: index, Offset: -1, Reason: fmt.Sprintf("%q is not the name of a delta file of the table", d.Name)}
		}
	}
	return nil
}

func openIndex(names []string) (s *catalog.Stream, closeAll func(), err error) {
	var files []io.Closer
	closeAll = func() {
		for _, f := range files {
			_ = f.Close() // it was only read
		}
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, closeAll, err
		}
		files = append(files, f)
		if s, err = catalog.ReadNewer(s, name, f); err != nil {
			return nil, closeAll, err
		}
	}
	return s, closeAll, nil
}

// SpreadFiles returns, for each of the files of a snapshot, given by their names and sizes, the
// number of the directory (of n) in which it is put. Bucket files go where the fewest bytes are.
// Delta files go to the directory that they came from, as far as there are that many. The result is
// deterministic.
func SpreadFiles(names []string, bytes []int64, n int) []int {
	load := make([]int64, n)
	out := make([]int, len(names))
	for i, name := range names {
		at := 0 // the directory for everything else
		switch {
		case strings.HasSuffix(name, ".bucket"):
			for j := range load {
				if load[j] < load[at] {
					at = j
				}
			}
		case strings.HasSuffix(name, deltafile.Suffix):
			at = deltafile.DirOf(name) % n
		}
		out[i] = at
		load[at] += bytes[i]
	}
	return out
}
