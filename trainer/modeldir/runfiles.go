package modeldir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"aibox/sparsetable"
)

// A snapshot of a run is taken to another machine as a model is: the dense files under
// their names, the reports as reports/NAME, or as outside/NAME if they are not in the model
// directory, and the files of the table as table/NAME, with one index for each of its
// snapshots (indexes.go). RESUME.json is passed as it is; it names the snapshots of the table by their
// numbers, which stay. RestoreBeside begins to restore one.

// TableFiles begins the names of the table's files.
const TableFiles = tableName + "/"

// outsideName begins the names of reports that are outside of the model directory.
const outsideName = "outside"

func isIndex(name string) bool {
	return name == indexName || strings.HasPrefix(name, indexName+"-") || strings.HasPrefix(name, pagesName)
}

// RunReport is a report of a run, of which the first Bytes belong to a snapshot.
type RunReport struct {
	Path  string
	Bytes int64
}

// RunFiles are the files of a snapshot of a run that goes on. They stay as they are until
// Close, whatever the run does.
type RunFiles struct {
	Portable
	tables map[uint64]*sparsetable.SnapshotFiles // on SSD, whose indexes are not added yet
}

// HoldRun returns the files of a snapshot: these dense files, these snapshots of the
// table, and reports by their base names.
func (w *Writer) HoldRun(dense []string, table sparsetable.Table, snapshots []uint64, reports []RunReport) (_ *RunFiles, err error) {
	p := &RunFiles{tables: make(map[uint64]*sparsetable.SnapshotFiles)}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	for _, name := range distinct(dense) {
		if err := p.hold(name, filepath.Join(w.genDir(), name), -1); err != nil {
			return nil, err
		}
	}
	for _, r := range reports {
		name := path.Join(outsideName, filepath.Base(r.Path))
		if in, err := filepath.Rel(w.genDir(), r.Path); err == nil && filepath.IsLocal(in) {
			name = filepath.ToSlash(in)
		}
		if err := p.hold(name, r.Path, r.Bytes); err != nil {
			return nil, err
		}
	}
	holder, ok := table.(sparsetable.SnapshotHolder)
	if !ok {
		return nil, sparsetable.ErrUnsupported
	}
	for _, id := range distinct(snapshots) {
		held, err := holder.HoldSnapshot(id)
		if err != nil {
			return nil, err
		}
		p.held = append(p.held, closer(held.Release))
		for _, f := range held.Files {
			p.addOfTable(f)
		}
		if held.WriteIndex != nil {
			p.tables[id] = held
		}
	}
	return p, nil
}

// distinct leaves out what comes twice: the best epoch so far may be the present one.
func distinct[T cmp.Ordered](list []T) []T { return slices.Compact(slices.Sorted(slices.Values(list))) }

type closer func() error

func (c closer) Close() error { return c() }

// hold opens a file, so that it can be read after it was deleted, too. Of one that grows
// the first bytes are held; -1: all.
func (p *RunFiles) hold(name, at string, bytes int64) error {
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	p.held = append(p.held, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if bytes < 0 {
		bytes = info.Size()
	}
	if info.Size() < bytes {
		return fmt.Errorf("%s has %d bytes, but had %d when the snapshot was fixed", at, info.Size(), bytes)
	}
	p.Files = append(p.Files, PortableFile{Name: name, Bytes: bytes, Private: path.Base(name) == quarantineName, Open: func() (sparsetable.OpenFile, error) { return keptOpen{f}, nil }})
	return nil
}

// addOfTable adds a file of the table. Snapshots share files; the longer one of a file that
// has grown begins with the other.
func (p *RunFiles) addOfTable(f sparsetable.PortableFile) {
	name := path.Join(tableName, f.Name)
	if i := slices.IndexFunc(p.Files, func(have PortableFile) bool { return have.Name == name }); i >= 0 {
		if p.Files[i].Bytes < f.Bytes {
			p.Files[i].Bytes, p.Files[i].Open = f.Bytes, f.Open
		}
		return
	}
	p.Files = append(p.Files, PortableFile{Name: name, Bytes: f.Bytes, Unique: f.Unique, Open: f.Open})
}

// WriteIndexes adds the indexes of the table's snapshots to the files, which takes as long
// as writing what x lacks of them. The table is open. The files are not used any more when
// WriteIndexes is called for other ones with the same x.
func (p *RunFiles) WriteIndexes(x *Indexes) error {
	if len(p.tables) == 0 {
		return nil
	}
	if err := x.add(&p.Portable, p.tables); err != nil {
		return err
	}
	clear(p.tables)
	return nil
}

// CommitRun makes the restored files those of an interrupted run, with which the next one
// goes on. resume is RESUME.json. Reports that are outside of the model directory are put to
// where outside says, by their base names, unless there is something.
func (r *Restoring) CommitRun(ctx context.Context, resume []byte, outside func(name string) string) error {
	if err := r.commitRun(ctx, resume, outside); err != nil {
		return fmt.Errorf("restoring a snapshot: %w", err)
	}
	return nil
}

func (r *Restoring) commitRun(ctx context.Context, resume []byte, outside func(name string) string) error {
	gen := r.w.genDir()
	if err := putOutside(filepath.Join(gen, outsideName), outside); err != nil {
		return err
	}
	lists, err := filepath.Glob(filepath.Join(gen, flatName(indexName)+"-*"))
	if err != nil {
		return err
	}
	indexes, paths := make([][]string, len(lists)), lists
	for i, list := range lists {
		if indexes[i], err = indexFiles(list); err != nil {
			return err
		}
		paths = append(paths, indexes[i]...)
	}
	if len(indexes) > 0 {
		if _, err := sparsetable.RestoreIndex(ctx, r.tableOptions(), indexes...); err != nil {
			return err
		}
	}
	for _, path := range paths { // not needed any more
		_ = os.Remove(path)
	}
	if rows := filepath.Join(gen, reportsName, quarantineName); !gone(rows) {
		if err := os.Chmod(rows, 0o600); err != nil { // they may hold personal data
			return err
		}
	}
	if err := r.sync(); err != nil {
		return err
	}
	if err := r.w.SaveResume(resume); err != nil {
		return err
	}
	_ = os.Remove(r.path(restoreName)) // it is a run that can go on now
	return nil
}

// putOutside moves reports out of the generation.
func putOutside(from string, outside func(name string) string) error {
	entries, err := os.ReadDir(from)
	if gone(from) {
		return nil
	}
	for _, e := range entries {
		to := outside(e.Name())
		if to == "" || !gone(to) {
			continue
		}
		if err := (sparsetable.OSFS{}).MkdirAll(filepath.Dir(to)); err != nil {
			return err
		}
		data, err := os.Open(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		err = writeFile(to, func(w io.Writer) error {
			_, err := io.Copy(w, data)
			return err
		})
		if err := errors.Join(err, data.Close()); err != nil {
			return err
		}
	}
	return errors.Join(err, removeAll(from))
}
