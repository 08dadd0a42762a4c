package ssd_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/tabletest"
)

// realDisk is a directory of the operating system. It does not simulate failures.
type realDisk struct {
	sparsetable.FS // nil: a table on SSD does not use it
	t              *testing.T
	dir            string
	open           int
}

func (d *realDisk) FailAt(int, bool) {}
func (d *realDisk) Failed() bool     { return false }
func (d *realDisk) OpenFiles() int   { return d.open }

// Crash simulates the end of the process: what was written to the kernel stays. Files exist by the
// time that the catalog names them.
func (d *realDisk) Crash(*rand.Rand) tabletest.Disk {
	after := &realDisk{t: d.t, dir: d.t.TempDir()}
	catalog := filepath.Join("0", "catalog")
	if err := os.CopyFS(filepath.Join(after.dir, catalog), os.DirFS(filepath.Join(d.dir, catalog))); err != nil {
		d.t.Fatal(err)
	}
	for _, path := range d.Files() {
		name, err := filepath.Rel(d.dir, path)
		if err != nil || strings.HasPrefix(name, catalog) {
			continue
		}
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.MkdirAll(filepath.Join(after.dir, filepath.Dir(name)), 0o777)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(after.dir, name), data, 0o666)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
	return after
}

func (d *realDisk) Files() (all []string) {
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// onDevices is a table with its devices.
type onDevices struct {
	sparsetable.Table
	disk    *realDisk
	devices []blockio.Device
}

func (t *onDevices) Close() error {
	err := t.Table.Close()
	if errors.Is(err, sparsetable.ErrPinned) {
		return err
	}
	for _, d := range t.devices {
		t.disk.open--
		err = errors.Join(err, d.Close())
	}
	t.devices = nil
	return err
}

// TestSSDEngines runs the tabletest suite on real files, with each I/O engine, with direct I/O and
// through the page cache, which is used where a kernel or a file system does not allow direct I/O.
func TestSSDEngines(t *testing.T) {
	for _, c := range []struct {
		engine string
		direct blockio.Mode
		dirs   int
	}{
		{"io_uring", blockio.Auto, 1}, {"io_uring", blockio.Off, 2}, {"pread", blockio.Auto, 2}, {"pread", blockio.Off, 1},
	} {
		o := blockio.Options{Engine: c.engine, Direct: c.direct, Logger: slog.New(slog.DiscardHandler)}
		t.Run(c.engine+"/direct="+strconv.Itoa(int(c.direct)), func(t *testing.T) {
			if testing.Short() && c.engine == "io_uring" {
				t.Skip("other tests have this engine")
			}
			probe, err := blockio.Open(t.Context(), t.TempDir(), o)
			if err != nil {
				t.Skip(err)
			}
			if err := probe.Close(); err != nil {
				t.Fatal(err)
			}
			tabletest.Contract(t, realKind(t, o, c.dirs))
		})
	}
}

func realKind(t *testing.T, o blockio.Options, dirs int) tabletest.Kind {
	open := func(ctx context.Context, opts sparsetable.Options) (_ sparsetable.Table, err error) {
		disk := opts.FS.(*realDisk)
		tab := &onDevices{disk: disk}
		defer func() {
			if err != nil {
				for _, d := range tab.devices {
					disk.open--
					err = errors.Join(err, d.Close())
				}
			}
		}()
		opts.FS, opts.SSD.Dirs = nil, nil
		o.ReadOnly = opts.ReadOnly
		for i := range dirs {
			dir := filepath.Join(disk.dir, strconv.Itoa(i))
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return nil, err
			}
			d, err := blockio.Open(t.Context(), dir, o)
			if err != nil {
				return nil, err
			}
			if want := o.Direct != blockio.Off; d.Engine() != o.Engine || d.Direct() && !want {
				t.Fatalf("engine %s, direct %v, want %+v", d.Engine(), d.Direct(), o)
			}
			disk.open++
			tab.devices = append(tab.devices, d)
			opts.SSD.Dirs = append(opts.SSD.Dirs, dir)
		}
		opts.Dir = opts.SSD.Dirs[0]
		if opts.MemoryBytes == 0 {
			opts.MemoryBytes = 24 << 20
		}
		tab.Table, err = openOn(ctx, opts, tab.devices, vfs.Default)
		if err != nil {
			return nil, err
		}
		return tab, nil
	}
	return tabletest.Kind{
		Open:     open,
		NewDisk:  func() tabletest.Disk { return &realDisk{t: t, dir: t.TempDir()} },
		MoreKeys: 700, NeedsReopen: true, Evicts: true, OwnFiles: true,
	}
}
