package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"

	"aibox/internal/errkind"
)

// Reading are files with missing bytes, for a process that only reads them, whether or not another
// one is fetching these bytes. It writes neither the files nor the record. Everything is first read
// from the local file. If that turns out to be wrong, because it has not arrived or is just being
// written, the chunks that contain it are read from the remote directory through a small cache. It
// is a sparsetable.Source.
type Reading struct {
	d      *Directory
	id     string   // of the manifest
	copies []string // paths of the record
	find   func(base string) string
	files  map[string]*arrivingFile
	cache  *chunkCache

	mu   sync.Mutex
	seen fs.FileInfo // of the record when it was last read; under mu
}

// OpenReading opens, for reading, the files that miss bytes according to the record with copies at
// paths. find returns the path of the file with a base name, "" if it does not exist. OpenReading
// returns nil if there is no record: then the files are complete. The error is a *DamagedError if
// it is known that the files will never be complete.
func (d *Directory) OpenReading(paths []string, find func(base string) string) (*Reading, error) {
	r := &Reading{d: d, copies: paths, find: find, files: make(map[string]*arrivingFile)}
	seen, err := r.look()
	if seen == nil {
		return nil, err
	}
	rec, m, err := readRecords(paths) // those that look has seen, or later ones
	if rec == nil {
		return nil, err
	}
	if rec.Damaged != "" {
		return nil, &DamagedError{paths[0], rec.Damaged}
	}
	r.seen, r.id = seen, m.ID
	for i := range m.Files {
		if f := &m.Files[i]; slices.Contains(rec.Lacking, f.Name) {
			r.files[path.Base(f.Name)] = newArrivingFile(f)
		}
	}
	r.cache = newChunkCache(d)
	return r, nil
}

// Close ends fetching. Waiting readers get an error.
func (r *Reading) Close() { r.cache.close() }

// Stats returns the statistics so far.
func (r *Reading) Stats() ReadingStats {
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	return r.cache.stats
}

// Lacks implements sparsetable.Source.
func (r *Reading) Lacks(name string) bool {
	f := r.files[name]
	return f != nil && !f.whole.Load()
}

// Here implements sparsetable.Source. The reader itself notices missing bytes.
func (r *Reading) Here(string, int64, int64) bool { return true }

// Await implements sparsetable.Source.
func (r *Reading) Await(string, int64, int64) error { return nil }

// Again implements sparsetable.Source.
func (r *Reading) Again(name string, buf []byte, offset int64) (bool, error) {
	f := r.files[name]
	if f == nil {
		return false, nil
	}
	whole, err := r.isWhole(f)
	if err != nil {
		return false, err
	}
	if whole { // it may not have been complete when it was read
		return r.readWhole(name, buf, offset)
	}
	changed, err := r.cache.bring(f, buf, offset)
	if err == nil && !changed { // the damage may have happened on the way
		r.cache.forget(f, offset, offset+int64(len(buf)))
		changed, err = r.cache.bring(f, buf, offset)
	}
	if err != nil {
		return false, r.explain(f, err)
	}
	if !changed {
		r.d.log.Warn("a part of a file is damaged in the remote directory", "remote", r.d.uri, "file", f.Name, "offset", offset)
	}
	return changed, nil
}

// explain says what to do about bytes that cannot be fetched.
func (r *Reading) explain(f *arrivingFile, err error) error {
	return errkind.As(errkind.IO, fmt.Errorf("%s has not arrived completely, and the missing part cannot be fetched from %s: %w; make the remote directory reachable, or fetch the whole model with `aibox restore`", path.Base(f.Name), r.d.uri, err))
}

// isWhole reports whether the process that fetches the file has verified it.
func (r *Reading) isWhole(f *arrivingFile) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refreshLocked(); err != nil {
		return false, err
	}
	return f.whole.Load(), nil
}

// look returns the first existing copy of the record; nil if there is none, because everything has
// arrived.
func (r *Reading) look() (seen fs.FileInfo, err error) {
	var failed error
	for _, path := range r.copies {
		seen, err := os.Stat(path)
		if err == nil {
			return seen, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			failed = err
		}
	}
	return nil, failed
}

// refreshLocked reads the record if it has changed. REQUIRES: r.mu is held.
func (r *Reading) refreshLocked() error {
	now, err := r.look()
	missing := func(string) bool { return false }
	switch {
	case err != nil:
		return err
	case now == nil:
	case r.seen != nil && os.SameFile(now, r.seen) && now.ModTime().Equal(r.seen.ModTime()):
		return nil
	default:
		rec, m, err := readRecords(r.copies)
		if err != nil {
			return err
		}
		if rec == nil {
			break
		}
		if m.ID != r.id {
			return &DamagedError{r.copies[0], "it is of another generation than when the model was opened"}
		}
		missing = func(name string) bool { return slices.Contains(rec.Lacking, name) }
	}
	r.seen = now
	for _, f := range r.files {
		if !missing(f.Name) {
			f.whole.Store(true)
		}
	}
	return nil
}

// readWhole reads from a file that has become complete.
func (r *Reading) readWhole(name string, buf []byte, offset int64) (bool, error) {
	f, err := os.Open(r.find(name))
	if err != nil {
		return false, err
	}
	_, err = f.ReadAt(buf, offset)
	return err == nil, errors.Join(err, f.Close())
}
