package modeldir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"aibox/sparsetable"
)

// A generation is taken to another machine as files: those of the generation itself, under
// their names in it, and those of its table, wherever they are, as table/NAME. The index of
// a table on SSD is one of them. Not among them are what belongs to this machine (locks,
// the list of the table's directories), MODEL.json, which is passed as it is, and the
// quarantine, whose rows may hold personal data and are in the input.

const (
	// indexName is the index of a table on SSD.
	indexName      = tableName + "/index"
	quarantineName = "quarantine.jsonl"
)

// PortableFile is a file of a generation.
type PortableFile struct {
	Name   string // with slashes
	Bytes  int64
	Unique bool // as in sparsetable.PortableFile
	Open   func() (OpenFile, error)
}

// OpenFile is a file that is open for reading.
type OpenFile interface {
	io.ReaderAt
	io.Closer
}

// Portable are the files of a generation, which stay as they are until Close.
type Portable struct {
	Files []PortableFile

	held  io.Closer
	index *os.File
}

// Portable returns the files of a model. m is closed after the result.
func (m *Model) Portable(ctx context.Context, log *slog.Logger) (p *Portable, err error) {
	p = new(Portable)
	if p.held, err = m.HoldTable(ctx, log); err != nil {
		return nil, err
	}
	if err := m.collect(p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close lets other processes write the table.
func (p *Portable) Close() error {
	var err error
	if p.index != nil {
		err = p.index.Close()
	}
	return errors.Join(err, p.held.Close())
}

func (p *Portable) add(name, at string, bytes int64, unique bool) {
	p.Files = append(p.Files, PortableFile{name, bytes, unique, func() (OpenFile, error) { return os.Open(at) }})
}

func (m *Model) collect(p *Portable) error {
	gen := filepath.Join(m.Dir, m.Generation)
	for _, name := range []string{jobName, statisticsName, m.Manifest.Dense} {
		info, err := os.Stat(filepath.Join(gen, name))
		if err != nil {
			return err
		}
		p.add(name, filepath.Join(gen, name), info.Size(), false)
	}
	if err := p.addReports(gen); err != nil {
		return err
	}
	o, err := m.TableOptions(sparsetable.Options{})
	if err != nil {
		return err
	}
	files, err := sparsetable.PortableFiles(o)
	if err != nil {
		return err
	}
	for _, f := range files {
		p.add(path.Join(tableName, f.Name), f.Path, f.Bytes, f.Unique)
	}
	if o.Kind != sparsetable.KindSSD {
		return nil
	}
	return p.addIndex(o)
}

func (p *Portable) addReports(gen string) error {
	return filepath.WalkDir(filepath.Join(gen, reportsName), func(at string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a run of an earlier version has moved them
		}
		if err != nil || e.IsDir() || !e.Type().IsRegular() || e.Name() == quarantineName {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(gen, at)
		if err != nil {
			return err
		}
		p.add(filepath.ToSlash(name), at, info.Size(), false)
		return nil
	})
}

// IsReport reports whether a file of a generation, by its name in a list of its files, is a
// report, which a model can do without.
func IsReport(name string) bool { return strings.HasPrefix(name, reportsName+"/") }

// addIndex writes the table's index to a file that has no name, beside the table or, where
// that cannot be written, in the directory for temporary files.
func (p *Portable) addIndex(o sparsetable.Options) error {
	beside := o.Dir
	if len(o.SSD.Dirs) > 0 {
		beside = o.SSD.Dirs[0]
	}
	f, err := os.CreateTemp(filepath.Dir(beside), ".aibox-index-")
	if err != nil {
		f, err = os.CreateTemp("", "aibox-index-")
	}
	if err != nil {
		return err
	}
	p.index = f
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if err := sparsetable.WriteIndex(o, f); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.Files = append(p.Files, PortableFile{indexName, info.Size(), false, func() (OpenFile, error) { return keptOpen{f}, nil }})
	return nil
}

// keptOpen is a file that is closed by somebody else.
type keptOpen struct{ io.ReaderAt }

func (keptOpen) Close() error { return nil }

// Identity tells the model from all others, wherever it is copied to.
func (m *Manifest) Identity() string {
	if m.ID != "" {
		return m.ID
	}
	// An earlier version saved it.
	return hashOf([]byte(strings.Join([]string{m.JobSHA256, m.StatisticsSHA256, m.Digest, m.SavedAt, m.Dense, fmt.Sprint(m.Examples)}, "\n")))
}
