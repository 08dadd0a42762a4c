package modelfiles

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"aibox/sparsetable"
)

// File is a file of a generation.
type File struct {
	Name    string // with slashes
	Bytes   int64
	Unique  bool // as in sparsetable.PortableFile
	Private bool // only its owner may read it
	Open    func() (sparsetable.OpenFile, error)
}

// Held are the files of a generation, which do not change until Close.
type Held struct {
	Files []File

	held []io.Closer // closed by Close
}

// OfModel returns the files of the model whose generation is in the directory gen. dense is the
// name of its dense file, and o says where its table is. held keeps the table from changing, and is
// closed with the result.
func OfModel(gen, dense string, o sparsetable.Options, held io.Closer) (*Held, error) {
	p := &Held{held: []io.Closer{held}}
	if err := p.addModel(gen, dense, o); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close lets other processes write the table.
func (p *Held) Close() error {
	var errs []error
	for _, c := range slices.Backward(p.held) {
		errs = append(errs, c.Close())
	}
	p.held = nil
	return errors.Join(errs...)
}

func (p *Held) add(name, at string, bytes int64) {
	p.Files = append(p.Files, File{Name: name, Bytes: bytes, Open: func() (sparsetable.OpenFile, error) { return os.Open(at) }})
}

func (p *Held) addModel(gen, dense string, o sparsetable.Options) error {
	for _, name := range []string{Job, Statistics, dense} {
		info, err := os.Stat(filepath.Join(gen, name))
		if err != nil {
			return err
		}
		p.add(name, filepath.Join(gen, name), info.Size())
	}
	if err := p.addReports(gen); err != nil {
		return err
	}
	files, err := sparsetable.PortableFiles(o)
	if err != nil {
		return err
	}
	for _, f := range files {
		p.Files = append(p.Files, File{Name: path.Join(Table, f.Name), Bytes: f.Bytes, Unique: f.Unique, Open: f.Open})
	}
	if o.Kind != sparsetable.KindSSD {
		return nil
	}
	beside := o.Dir
	if len(o.SSD.Dirs) > 0 {
		beside = o.SSD.Dirs[0]
	}
	return p.addIndex(Index, filepath.Dir(beside), func(w io.Writer) error { return sparsetable.WriteIndex(o, w) })
}

func (p *Held) addReports(gen string) error {
	return filepath.WalkDir(filepath.Join(gen, Reports), func(at string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a run of an earlier version has moved them
		}
		if err != nil || e.IsDir() || !e.Type().IsRegular() || e.Name() == Quarantine {
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
		p.add(filepath.ToSlash(name), at, info.Size())
		return nil
	})
}

// TempFile makes a file without a name, in dir or, if that cannot be written, in the directory for
// temporary files.
func TempFile(dir string) (*os.File, error) {
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

// addIndex adds an index of the table. write writes it.
func (p *Held) addIndex(name, dir string, write func(io.Writer) error) error {
	f, err := TempFile(dir)
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
	p.Files = append(p.Files, File{Name: name, Bytes: info.Size(), Open: func() (sparsetable.OpenFile, error) { return keptOpen{f}, nil }})
	return nil
}

// keptOpen is a file that somebody else closes.
type keptOpen struct{ io.ReaderAt }

func (keptOpen) Close() error { return nil }
