package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"aibox/sparsetable"
)

// openForImport opens the table with its snapshots, or makes one for the rows of
// in. undo, unless it is nil, removes what was made, when the table is closed.
func openForImport(c *cli.Context, o sparsetable.Options, in *rowFiles) (t sparsetable.Table, infos []sparsetable.SnapshotInfo, undo func() error, err error) {
	dirs := o.SSD.Dirs
	if len(dirs) == 0 {
		dirs = []string{o.Dir}
	}
	if slices.ContainsFunc(dirs, tableIn) {
		t, infos, err = openWithSnapshots(c.Context, o)
		if err != nil || len(infos) > 0 || o.Kind != sparsetable.KindSSD {
			return t, infos, nil, err
		}
		// It was being made when its maker was killed. No row was ever in it, and
		// its layout is that of rows which did not come.
		if err := errors.Join(t.Close(), sparsetable.Remove(dirs, false)); err != nil {
			return nil, nil, nil, err
		}
	}
	if in.layout == nil {
		return nil, nil, nil, in.noRows
	}
	if o.Layout = *in.layout; c.IsSet("value-format") {
		if o.Layout.Format, err = sparsetable.ParseValueFormat(c.String("value-format")); err != nil {
			return nil, nil, nil, err
		}
	}
	undo, err = undoMaking(dirs)
	if err != nil {
		return nil, nil, nil, err
	}
	t, infos, err = openWithSnapshots(c.Context, o)
	if err != nil && !noSnapshotIn(o) || len(infos) > 0 {
		undo = nil // another process was faster
	}
	return t, infos, undo, err
}

// openWithSnapshots opens a table and lists its snapshots.
func openWithSnapshots(ctx context.Context, o sparsetable.Options) (sparsetable.Table, []sparsetable.SnapshotInfo, error) {
	t, err := sparsetable.Open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	infos, err := t.Snapshots()
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	return t, infos, nil
}

// noSnapshotIn says whether there is no table where o says, or one without any
// snapshot, which no process has open.
func noSnapshotIn(o sparsetable.Options) bool {
	if !slices.ContainsFunc(append([]string{o.Dir}, o.SSD.Dirs...), tableIn) {
		return true
	}
	o.ReadOnly, o.Layout = true, sparsetable.Layout{}
	t, err := sparsetable.Open(context.Background(), o)
	if err == nil {
		_ = t.Close() // it was only read
	}
	return errors.Is(err, sparsetable.ErrNoSnapshot)
}

// undoMaking returns what removes the table that is made in dirs from now on:
// directories that are not there, and from the others its files.
func undoMaking(dirs []string) (undo func() error, err error) {
	before := map[string]map[string]bool{}
	for _, dir := range dirs {
		if !exists(dir) {
			continue
		}
		files, err := sparsetable.FilesIn(dir)
		if err != nil {
			return nil, err
		}
		before[dir] = map[string]bool{}
		for _, name := range files.Names() {
			before[dir][name] = true
		}
	}
	return func() error {
		var errs []error
		for _, dir := range dirs {
			if before[dir] == nil {
				errs = append(errs, os.RemoveAll(dir))
				continue
			}
			files, err := sparsetable.FilesIn(dir)
			errs = append(errs, err)
			for _, name := range files.Names() {
				if !before[dir][name] {
					errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
				}
			}
		}
		return errors.Join(errs...)
	}, nil
}
