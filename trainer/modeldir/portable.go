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
	"slices"
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
	Name    string // with slashes
	Bytes   int64
	Unique  bool // as in sparsetable.PortableFile
	Private bool // nobody but its owner may read it
	Open    func() (sparsetable.OpenFile, error)
}

// Portable are the files of a generation, which stay as they are until Close.
type Portable struct {
	Files []PortableFile

	held []io.Closer // closed by Close
}

// Portable returns the files of a model. m is closed after the result.
func (m *Model) Portable(ctx context.Context, log *slog.Logger) (p *Portable, err error) {
	p = new(Portable)
	held, err := m.HoldTable(ctx, log)
	if err != nil {
		return nil, err
	}
	p.held = append(p.held, held)
	if err := m.collect(p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close lets other processes write the table.
func (p *Portable) Close() error {
	var errs []error
	for _, c := range slices.Backward(p.held) {
		errs = append(errs, c.Close())
	}
	p.held = nil
	return errors.Join(errs...)
}

func (p *Portable) add(name, at string, bytes int64, unique bool) {
	p.Files = append(p.Files, PortableFile{Name: name, Bytes: bytes, Unique: unique, Open: func() (sparsetable.OpenFile, error) { return os.Open(at) }})
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
		p.Files = append(p.Files, PortableFile{Name: path.Join(tableName, f.Name), Bytes: f.Bytes, Unique: f.Unique, Open: f.Open})
	}
	if o.Kind != sparsetable.KindSSD {
		return nil
	}
	beside := o.Dir
	if len(o.SSD.Dirs) > 0 {
		beside = o.SSD.Dirs[0]
	}
	return p.addIndex(indexName, filepath.Dir(beside), func(w io.Writer) error { return sparsetable.WriteIndex(o, w) })
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

// TempFile returns a file in the generation that has no name, so that nothing is left of it
// once it is closed, or the process has died.
func (w *Writer) TempFile() (*os.File, error) { return tempFile(w.genDir()) }

// tempFile makes a file that has no name, in a directory or, where that cannot be written,
// in the one for temporary files.
func tempFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".aibox-index-")
	if err != nil {
		f, err = os.CreateTemp("", "aibox-index-")
	}
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// addIndex adds an index of the table, which write writes.
func (p *Portable) addIndex(name, dir string, write func(io.Writer) error) error {
	f, err := tempFile(dir)
	if err != nil {
		return err
	}
	p.held = append(p.held, f)
	if err := write(f); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.Files = append(p.Files, PortableFile{Name: name, Bytes: info.Size(), Open: func() (sparsetable.OpenFile, error) { return keptOpen{f}, nil }})
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
