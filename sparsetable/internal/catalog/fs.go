package catalog

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleFS is the file system that Pebble sees, with two things mended.
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
type pebbleFS struct {
	vfs.FS
	log *logger
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
