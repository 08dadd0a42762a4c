package bucketfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
)

// unreferencedFile is a bucket file that no snapshot refers to.
type unreferencedFile struct {
	dir  *directory
	name string
}

// load opens the files of the states and deletes all other files. The first state is the current
// one; its files must all exist and be undamaged. If another snapshot has lost a file, only that
// snapshot can no longer be opened.
func (s *Set) load(ctx context.Context, states []State) error {
	union := map[uint32]FileState{}
	s.opened = map[uint32]uint64{}
	s.mu.nextFile = max(1, states[0].NextFile)
	for i, st := range states {
		s.seq.Store(max(s.seq.Load(), st.Seq))
		for _, f := range st.Files {
			u, known := union[f.File]
			if known && u.Incarnation != f.Incarnation {
				return fmt.Errorf("%w: the snapshots have two files with the same number, %s and %s", ErrCorrupt,
					fileName(s.opts.Table, f.File, f.Incarnation), fileName(s.opts.Table, f.File, u.Incarnation))
			}
			s.opened[f.File] = f.Begun
			u.File, u.Incarnation, u.Bytes, u.Begun = f.File, f.Incarnation, max(u.Bytes, f.Bytes), f.Begun
			if i == 0 {
				u.LiveBytes = f.LiveBytes
			}
			union[f.File] = u
		}
	}
	where, unreferenced, err := s.findFiles(union)
	if err != nil {
		return err
	}
	if err := s.checkFound(states[0], where); err != nil {
		return err
	}
	ids := slices.Sorted(maps.Keys(union))
	errs := make([]error, len(ids))
	var loading errgroup.Group
	loading.SetLimit(loads)
	for i, id := range ids {
		loading.Go(func() error {
			errs[i] = panics.Do("opening a bucket file", func() error { return s.loadFile(ctx, where[id], union[id]) })
			return nil
		})
	}
	_ = loading.Wait() // the errors are in errs
	for i, err := range errs {
		if err == nil {
			continue
		}
		id := ids[i]
		lost := errors.Is(err, ErrUnknownFile) || errors.Is(err, ErrCorrupt)
		if !lost || slices.ContainsFunc(states[0].Files, func(f FileState) bool { return f.File == id }) {
			return err
		}
		if f := s.mu.files[id]; f != nil {
			f.closeHandle()
			delete(s.mu.files, id)
		}
		s.opts.Logger.Warn("bucket file: a snapshot has lost a file and can no longer be opened; the one that is opened now is complete", "error", err)
	}
	for _, st := range states {
		if st.NextFile == 0 { // the zero State
			continue
		}
		if s.mu.holds[st.Snapshot] != nil {
			return fmt.Errorf("bucketfile: open: snapshot %d is given twice", st.Snapshot)
		}
		held := []*file{}
		for _, fs := range st.Files {
			if f := s.mu.files[fs.File]; f != nil {
				f.holders++
				held = append(held, f)
			}
		}
		s.mu.holds[st.Snapshot] = held
	}
	if s.opts.ReadOnly {
		return nil
	}
	// Files are deleted only after everything that the states need has been found.
	for _, st := range unreferenced {
		if err := st.dir.dev.Remove(st.name); err != nil {
			return fmt.Errorf("bucketfile: delete a file that nothing refers to: %w", err)
		}
	}
	return nil
}

// findFiles looks for the table's files in all directories.
func (s *Set) findFiles(wanted map[uint32]FileState) (where map[uint32]*directory, unreferenced []unreferencedFile, err error) {
	where = map[uint32]*directory{}
	for _, d := range s.dirs {
		names, err := d.dev.List()
		if err != nil {
			return nil, nil, fmt.Errorf("bucketfile: list %s: %w", d.dev.Dir(), err)
		}
		for _, name := range names {
			id, incarnation, ok := parseFileName(s.opts.Table, name)
			if !ok {
				continue
			}
			if w, ok := wanted[id]; !ok || w.Incarnation != incarnation {
				unreferenced = append(unreferenced, unreferencedFile{d, name})
			} else if other := where[id]; other != nil {
				return nil, nil, fmt.Errorf("%w: %s is both in %s and in %s: remove the copy", ErrTwoFiles, name, other.dev.Dir(), d.dev.Dir())
			} else {
				where[id] = d
			}
		}
	}
	return where, unreferenced, nil
}

// checkFound returns an error if files of the current state were not found. It says how many, and
// names the directories in which no file of the table was found: such a directory was probably
// lost, or is not mounted.
func (s *Set) checkFound(current State, where map[uint32]*directory) error {
	var lost []FileState
	for _, f := range current.Files {
		if where[f.File] == nil {
			lost = append(lost, f)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	what := fileName(s.opts.Table, lost[0].File, lost[0].Incarnation)
	if len(lost) > 1 {
		what = fmt.Sprintf("%d of the table's %d files, such as %s,", len(lost), len(current.Files), what)
	}
	err := fmt.Errorf("%w: %s cannot be found in %s", ErrUnknownFile, what, dirNames(s.dirs))
	found := map[*directory]bool{}
	for _, d := range where {
		found[d] = true
	}
	if empty := slices.DeleteFunc(slices.Clone(s.dirs), func(d *directory) bool { return found[d] }); len(empty) > 0 {
		err = fmt.Errorf("%w; no file of the table is in %s", err, dirNames(empty))
	}
	return err
}

// dirNames lists directories for error messages.
func dirNames(dirs []*directory) string {
	var names []string
	for _, d := range dirs {
		names = append(names, d.dev.Dir())
	}
	return strings.Join(names, ", ")
}

// loads is how many files are opened at once: a header may have to be fetched from elsewhere.
const loads = 8

// loadFile opens a file of an earlier run and checks its header. d is nil if the file is in no
// directory.
func (s *Set) loadFile(ctx context.Context, d *directory, fs FileState) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("bucketfile: open: %w", err)
	}
	if d == nil {
		return fmt.Errorf("%w: %s cannot be found in %s", ErrUnknownFile, fileName(s.opts.Table, fs.File, fs.Incarnation), dirNames(s.dirs))
	}
	f := &file{
		set: s, dir: d, id: fs.File, incarnation: fs.Incarnation, name: fileName(s.opts.Table, fs.File, fs.Incarnation),
		begun: fs.Begun, live: fs.LiveBytes, valid: fs.Bytes, ended: true,
	}
	handle, err := d.dev.OpenFile(f.name)
	if err != nil {
		return fmt.Errorf("bucketfile: open: %w", err)
	}
	f.handle = handle
	s.mu.Lock()
	s.mu.files[f.id] = f // after an error, Open closes the file
	s.mu.Unlock()
	if f.bytes, err = handle.Size(); err != nil {
		return fmt.Errorf("bucketfile: open: %w", err)
	}
	if f.bytes < max(fs.Bytes, fileHeaderBytes) {
		return f.corrupt(f.bytes, fmt.Sprintf("the file has %d bytes, %d were durable", f.bytes, fs.Bytes))
	}
	if err := s.checkHeader(f); err != nil {
		return err
	}
	f.written.Store(fs.Bytes)
	d.room.live.Add(fs.LiveBytes)
	d.room.used.Add(f.bytes)
	return nil
}

// checkHeader reads the header of a file and checks it. A damaged header of a file that is still
// arriving is fetched again.
func (s *Set) checkHeader(f *file) error {
	buf, err := s.pool.GetBeyond(fileHeaderBytes)
	if err != nil {
		return fmt.Errorf("bucketfile: open: %w", err)
	}
	defer s.pool.Put(buf)
	if n, err := f.handle.ReadAt(buf, 0); errors.Is(err, io.EOF) {
		return f.corrupt(int64(n), "the file ends here")
	} else if err != nil {
		return fmt.Errorf("bucketfile: read the header of %s: %w", f.path(), err)
	}
	for attempt := 0; ; attempt++ {
		reason := s.headerOf(f).check(buf)
		if reason == "" {
			return nil
		}
		again := false
		if attempt < maxRefetches {
			if again, err = blockio.Refetch(f.handle, buf, 0); err != nil {
				return fmt.Errorf("bucketfile: read the header of %s: %w", f.path(), err)
			}
		}
		if !again {
			return f.corrupt(0, reason)
		}
	}
}

func (s *Set) headerOf(f *file) fileHeader {
	return fileHeader{
		table: s.opts.Table, file: f.id, unit: s.unit, rowWords: s.opts.RowWords, format: s.opts.Format, incarnation: f.incarnation,
	}
}
