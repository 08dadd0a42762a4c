package catalog

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleFS is the file system that Pebble sees, with four things mended, one of
// them in lock.go.
//
// Where a directory cannot be synced Pebble panics, in goroutines of its own,
// too; here that ends the database instead.
//
// Pebble says which manifest is the present one by a marker file: it creates
// the manifest and the new marker, removes the old marker, and only then syncs
// the directory. A file system that keeps some of these but not others over a
// crash would leave a marker without its manifest, or no marker, which looks
// like no database. Journaling file systems keep the order, but none promises
// it: here the directory is synced before and after a marker is created.
//
// Pebble notes its options in a text without a checksum, and refuses to open a
// database whose text has another comparer, say, than it is told to use. The
// version of the Format implies all of them; so that damage to that file does no
// harm, it reads as empty.
type pebbleFS struct {
	vfs.FS
	log      *logger
	readOnly bool
}

// markerPrefix is that of the marker files of Pebble's vfs/atomicfs.
const markerPrefix = "marker."

func (fs pebbleFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !strings.HasPrefix(fs.PathBase(name), markerPrefix) {
		return fs.FS.Create(name, category)
	}
	if err := fs.syncDir(fs.PathDir(name)); err != nil {
		return nil, err
	}
	f, err := fs.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	if err := fs.syncDir(fs.PathDir(name)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// optionsPrefix is that of the files with Pebble's options.
const optionsPrefix = "OPTIONS-"

func (fs pebbleFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if !strings.HasPrefix(fs.PathBase(name), optionsPrefix) {
		return fs.FS.Open(name, opts...)
	}
	return vfs.NewMem().Create(optionsPrefix, vfs.WriteCategoryUnspecified)
}

func (fs pebbleFS) syncDir(name string) error {
	d, err := fs.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (fs pebbleFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return directory{f, fs.log}, nil
}

func (fs pebbleFS) Unwrap() vfs.FS { return fs.FS }

type directory struct {
	vfs.File
	log *logger
}

func (d directory) Sync() error {
	if err := d.File.Sync(); err != nil {
		d.log.Fatalf("sync directory: %v", err)
	}
	return nil
}
