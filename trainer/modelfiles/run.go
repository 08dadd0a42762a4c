package modelfiles

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"aibox/sparsetable"
)

// RunReport is a report of a run. Its first Bytes bytes belong to a snapshot.
type RunReport struct {
	Path  string
	Bytes int64
}

// RunFiles are the files of a snapshot of an unfinished run. They do not change until Close,
// whatever the run does.
type RunFiles struct {
	Held
	tables map[uint64]*sparsetable.SnapshotFiles // on SSD, whose indexes have not been added yet
}

// OfRun returns the files of a snapshot of a run whose generation is in the directory gen: the
// given dense files, snapshots of the table, and reports by base name.
func OfRun(gen string, dense []string, table sparsetable.Table, snapshots []uint64, reports []RunReport) (_ *RunFiles, err error) {
	p := &RunFiles{tables: make(map[uint64]*sparsetable.SnapshotFiles)}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	for _, name := range distinct(dense) {
		if err := p.hold(name, filepath.Join(gen, name), -1); err != nil {
			return nil, err
		}
	}
	for _, r := range reports {
		name := path.Join(Outside, filepath.Base(r.Path))
		if in, err := filepath.Rel(gen, r.Path); err == nil && filepath.IsLocal(in) {
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

// distinct removes duplicates: the best epoch so far may be the current one.
func distinct[T cmp.Ordered](list []T) []T { return slices.Compact(slices.Sorted(slices.Values(list))) }

type closer func() error

func (c closer) Close() error { return c() }

// hold opens a file, so that it can still be read after it was deleted. If the file grows, only its
// first bytes belong to the snapshot; -1 means all of it.
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
	p.Files = append(p.Files, File{Name: name, Bytes: bytes, Private: path.Base(name) == Quarantine, Open: func() (sparsetable.OpenFile, error) { return keptOpen{f}, nil }})
	return nil
}

// addOfTable adds a file of the table. Snapshots share files. If a file has grown, the longer
// version begins with the shorter one.
func (p *RunFiles) addOfTable(f sparsetable.PortableFile) {
	name := path.Join(Table, f.Name)
	if i := slices.IndexFunc(p.Files, func(have File) bool { return have.Name == name }); i >= 0 {
		if p.Files[i].Bytes < f.Bytes {
			p.Files[i].Bytes, p.Files[i].Open = f.Bytes, f.Open
		}
		return
	}
	p.Files = append(p.Files, File{Name: name, Bytes: f.Bytes, Unique: f.Unique, Open: f.Open})
}

// WriteIndexes adds the indexes of the table's snapshots to the files. It takes as long as writing
// what x does not have yet. The table must be open. p must no longer be in use when WriteIndexes is
// called for other files with the same x.
func (p *RunFiles) WriteIndexes(x *Indexes) error {
	if len(p.tables) == 0 {
		return nil
	}
	if err := x.add(&p.Held, p.tables); err != nil {
		return err
	}
	clear(p.tables)
	return nil
}
