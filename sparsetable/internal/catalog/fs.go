package catalog

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"golang.org/x/sys/unix"

	"aibox/internal/diskfault"
)

// pebbleFS is the file system that Pebble sees. It differs from the system's in five
// ways, one of which is in lock.go.
//
// Pebble panics when it cannot sync a directory, even in its own goroutines. Here such an error
// makes the database unusable instead (see logger.Fatalf), unless the file system cannot sync
// directories at all.
//
// Pebble names its current manifest by a marker file: it creates the manifest and the
// new marker, removes the old marker, and only then syncs the directory. A file system
// that keeps only some of these changes when the machine crashes would leave a marker
// without its manifest, or no marker, which looks like no database. Journaling file
// systems keep the order of the changes, but none of them promises it. So the directory
// is synced before and after a marker is created.
//
// Pebble stores its options in a text file without a checksum, and refuses to open a database if,
// for example, the comparer in that file is not the configured one. The version of the Format
// implies all these options. So the file reads as empty here, and damage to it does no harm.
//
// After Fatalf nothing is deleted any more: once the lock is released, the files belong to the next
// opener of the database.
type pebbleFS struct {
	vfs.FS
	log      *logger
	readOnly bool
}

// markerPrefix is the prefix of the marker files of Pebble's vfs/atomicfs.
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

// optionsPrefix is the prefix of the files with Pebble's options.
const optionsPrefix = "OPTIONS-"

func (fs pebbleFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if !strings.HasPrefix(fs.PathBase(name), optionsPrefix) {
		return fs.FS.Open(name, opts...)
	}
	return vfs.NewMem().Create(optionsPrefix, vfs.WriteCategoryUnspecified)
}

// Remove deletes a file, unless the database has failed for good.
func (fs pebbleFS) Remove(name string) error {
	if err := fs.log.failed(); err != nil {
		return err
	}
	return fs.FS.Remove(name)
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
	if err := syncHandle(d.File); err != nil {
		d.log.Fatalf("sync directory: %v", err)
	}
	return nil
}

// SyncDir makes what was created, renamed or removed in a directory durable, as far as its file system can.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncHandle(d), d.Close())
}

// syncHandle syncs an open directory. EINVAL says that its file system cannot sync directories, as in
// atomicfile.SyncDir.
func syncHandle(d vfs.File) error {
	if err := d.Sync(); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

// FaultyFS is a file system whose operations fail as a test specifies.
func FaultyFS(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch {
		case op.Kind == errorfs.OpFileClose:
			return nil
		case op.Kind.ReadOrWrite() == errorfs.OpIsRead:
			return diskfault.At("read", op.Path)
		}
		return diskfault.At("write", op.Path)
	}))
}
