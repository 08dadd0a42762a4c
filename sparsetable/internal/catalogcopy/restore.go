package catalogcopy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable/internal/catalog"
)

// Found is a copy in a directory.
type Found struct {
	Dir   string // of the copy
	Table string // the table's number

	fs   vfs.FS
	file *copyFile
}

// Find returns the undamaged copies in directories, the newest first. It reads each of them
// completely, and reports damaged ones to log.
func Find(fs vfs.FS, dirs []string, log *slog.Logger) (found []Found) {
	fs = withFaults(fs)
	for _, dir := range dirs {
		names, err := fs.List(dir)
		if err != nil {
			if !errors.Is(err, iofs.ErrNotExist) {
				log.Warn("a directory cannot be searched for copies of the table's catalog", "dir", dir, "error", err)
			}
			continue
		}
		for _, name := range names {
			if !IsDirName(name) {
				continue
			}
			f := Found{Dir: fs.PathJoin(dir, name), Table: name[:16], fs: fs}
			if err := f.read(); err != nil {
				log.Warn("a copy of the table's catalog cannot be used", "dir", f.Dir, "error", err)
				continue
			}
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b Found) int { return cmp.Compare(b.file.Number, a.file.Number) })
	return found
}

// Newest returns the newest copy of a table's catalog in directories, and its file HEAD. It does
// not verify the copy's tables; it skips copies whose COPY is damaged. dir is "" if there is none.
func Newest(fs vfs.FS, dirs []string, table string) (dir string, head []byte) {
	fs = withFaults(fs)
	number := uint64(0)
	for _, d := range dirs {
		at := fs.PathJoin(d, DirName(table))
		if f, err := readCopy(fs, at); err == nil && f.Number > number {
			dir, head, number = at, f.Small[catalog.HeadName], f.Number
		}
	}
	return dir, head
}

// Damaged returns, for each damaged copy of a table's catalog in directories, what is wrong with
// it, by the directory of the copy. A directory may have no copy.
func Damaged(dirs []string, table string) map[string]error {
	fs, bad := withFaults(nil), map[string]error{}
	for _, dir := range dirs {
		f := Found{Dir: fs.PathJoin(dir, DirName(table)), Table: table, fs: fs}
		if _, err := fs.Stat(fs.PathJoin(f.Dir, copyName)); errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err := f.read(); err != nil {
			bad[f.Dir] = err
		}
	}
	return bad
}

// read reads the copy and verifies the checksums of its tables.
func (f *Found) read() (err error) {
	if f.file, err = readCopy(f.fs, f.Dir); err != nil {
		return err
	}
	for _, t := range f.file.Tables {
		path := f.fs.PathJoin(f.Dir, t.Name)
		sum, bytes, err := checksum(f.fs, path, io.Discard)
		if err != nil {
			return err
		}
		if sum != t.CRC || bytes != t.Bytes {
			return fmt.Errorf("%s is damaged: it has %d bytes with the checksum %08x, but should have %d with %08x", path, bytes, sum, t.Bytes, t.CRC)
		}
	}
	return nil
}

// Head returns the contents of the copy's file HEAD.
func (f *Found) Head() []byte { return f.file.Small[catalog.HeadName] }

// Restore makes a catalog in dir from the copy, replacing an existing one. A crash leaves dir
// unchanged, without a catalog, or with the complete one.
func (f *Found) Restore(dir string) error {
	fs := f.fs
	made, old := dir+NewSuffix, dir+OldSuffix
	if err := errors.Join(fs.RemoveAll(made), fs.RemoveAll(old), fs.MkdirAll(made, 0o755)); err != nil {
		return err
	}
	for _, t := range f.file.Tables {
		if err := writeDurably(fs, fs.PathJoin(made, t.Name), func(w io.Writer) error {
			sum, _, err := checksum(fs, fs.PathJoin(f.Dir, t.Name), cloning{w})
			if err == nil && sum != t.CRC {
				err = fmt.Errorf("%s in %s has changed", t.Name, f.Dir)
			}
			return err
		}); err != nil {
			return err
		}
	}
	for name, b := range f.file.Small {
		if err := writeBytes(fs, fs.PathJoin(made, name), b); err != nil {
			return err
		}
	}
	if err := catalog.SyncDir(fs, made); err != nil {
		return err
	}
	if err := fs.Rename(dir, old); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	if err := fs.Rename(made, dir); err != nil {
		return err
	}
	return errors.Join(catalog.SyncDir(fs, fs.PathDir(dir)), fs.RemoveAll(old))
}

// RemoveBeside deletes the copy in the directory that has the catalog now, because only the other
// copies are kept up to date.
func (f *Found) RemoveBeside(catalog string) error {
	return f.fs.RemoveAll(f.fs.PathJoin(f.fs.PathDir(catalog), DirName(f.Table)))
}

// FS returns a read-only file system in which Dir is a catalog.
func (f *Found) FS() (vfs.FS, error) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll(f.Dir, 0o755); err != nil {
		return nil, err
	}
	for name, b := range f.file.Small {
		if err := writeBytes(mem, mem.PathJoin(f.Dir, name), b); err != nil {
			return nil, err
		}
	}
	return &overlay{FS: f.fs, small: mem, copied: f}, nil
}

// overlay has the sorted tables of a copy from disk, and its small files from COPY.
type overlay struct {
	vfs.FS
	small  *vfs.MemFS
	copied *Found
}

func (o *overlay) Unwrap() vfs.FS { return o.FS }

// of returns the file system that has a file.
func (o *overlay) of(name string) vfs.FS {
	if _, small := o.copied.file.Small[o.PathBase(name)]; small && o.PathDir(name) == o.copied.Dir {
		return o.small
	}
	return o.FS
}

func (o *overlay) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return o.of(name).Open(name, opts...)
}

func (o *overlay) Stat(name string) (vfs.FileInfo, error) { return o.of(name).Stat(name) }

func (o *overlay) List(dir string) ([]string, error) {
	if dir != o.copied.Dir {
		return o.FS.List(dir)
	}
	names, err := o.small.List(dir)
	for _, t := range o.copied.file.Tables {
		names = append(names, t.Name)
	}
	return names, err
}
