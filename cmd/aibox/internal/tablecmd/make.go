package tablecmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"aibox/sparsetable"
)

// openForImport opens the table and lists its snapshots, or makes a table for the rows
// of in. undo, unless it is nil, deletes a table that was made, once it is closed.
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
		// A table without a snapshot is left by an import that was killed while it
		// made the table. It has no rows, and its layout may not fit those of in.
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
	remove, err := undoMaking(dirs)
	if err != nil {
		return nil, nil, nil, err
	}
	t, infos, err = openWithSnapshots(c.Context, o)
	if err != nil && !noSnapshotIn(o) || len(infos) > 0 {
		return t, infos, nil, err // another process has made the table meanwhile
	}
	made := err == nil || slices.ContainsFunc(dirs, tableIn)
	return t, infos, func() error { return remove(made) }, err
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

// noSnapshotIn reports whether there is no table in the directories of o, or one that
// has no snapshot and that no process has open.
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

// undoMaking returns a function that deletes a table created in dirs from now on: it deletes
// directories that do not exist yet, and the table's files in others. If the table could not be
// opened, so that made is false, it leaves non-empty directories, because another process may be
// about to create a table there.
func undoMaking(dirs []string) (undo func(made bool) error, err error) {
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
	return func(made bool) error {
		var errs []error
		for _, dir := range dirs {
			if before[dir] == nil {
				if made {
					errs = append(errs, os.RemoveAll(dir))
				} else {
					_ = os.Remove(dir) // which only works if it is empty
				}
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
