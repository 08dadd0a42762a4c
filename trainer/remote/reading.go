package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"

	"aibox/internal/errkind"
	"aibox/internal/panics"
)

// Reading are files that lack bytes, for a process that only reads them while another one
// brings these bytes, or none does. It writes neither the files nor the record. What is read is
// first read where it is to be; where that turns out to be wrong, since it has not arrived or
// is just being written, the chunks that have it come from the remote directory, into a small
// cache. Several are fetched at once: those that several readers ask for, and those that follow in a
// file that is read from one end to the other. It is a sparsetable.Source.
type Reading struct {
	d      *Directory
	id     string   // of the manifest
	copies []string // paths of the record
	find   func(base string) string
	ctx    context.Context
	stop   context.CancelFunc

	ahead sync.WaitGroup // fetches of chunks that nobody has asked for yet

	mu     sync.Mutex
	cond   sync.Cond // on mu: a chunk is not busy any more
	files  map[string]*arrivingFile
	seen   fs.FileInfo // of the record when it was read last
	chunks []*readChunk
	places int // chunks at most
	busy   int // chunks that are being fetched
	runs   map[*arrivingFile]chunkRun
	clock  int64
	stats  ReadingStats
}

// ReadingStats says what a Reading has done.
type ReadingStats struct {
	FetchedBytes int64 // from the remote directory
	Fetches      int64 // chunks
	Hits         int64 // chunks that were in the cache
	CacheBytes   int64 // that the cache takes
}

// ReadingCacheBytes is what the cache of a Reading takes in memory at most.
const ReadingCacheBytes = 32 << 20

// readingFetches is how many chunks a Reading fetches at once.
const readingFetches = 8

// readChunk is a chunk in the cache.
type readChunk struct {
	part *arrivingPart
	i    int
	data []byte // its memory has chunkBytes bytes
	used int64  // at this value of the clock
	busy bool   // it is being fetched
}

// chunkRun says how a file was read last.
type chunkRun struct {
	end    int64 // offset in the file at which the chunk ends that was asked for last
	length int   // of the chunks that were asked for one after the other, that one included; 0: none yet
}

// OpenReading opens the files for reading that the record with copies at these paths says lack bytes; find
// returns where the file of a base name is, "" if it does not exist. It returns nil if there is no
// record: then the files are whole. The error is a *DamagedError if it is known that the files
// will never be whole.
func (d *Directory) OpenReading(paths []string, find func(base string) string) (*Reading, error) {
	r := &Reading{d: d, copies: paths, find: find, files: make(map[string]*arrivingFile), runs: make(map[*arrivingFile]chunkRun), places: ReadingCacheBytes / chunkBytes}
	r.cond.L = &r.mu
	seen, err := r.look()
	if seen == nil {
		return nil, err
	}
	rec, m, err := readRecords(paths) // those that were seen, or later ones
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
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// Close ends fetching. What is awaited then fails.
func (r *Reading) Close() {
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	r.ahead.Wait()
}

// Stats says what it has done.
func (r *Reading) Stats() ReadingStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Lacks implements sparsetable.Source.
func (r *Reading) Lacks(name string) bool {
	f := r.files[name]
	return f != nil && !f.whole.Load()
}

// Here implements sparsetable.Source: what is not there is noticed by who reads it.
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
	if whole { // perhaps it was not when it was read
		return r.readWhole(name, buf, offset)
	}
	changed, err := r.bring(f, buf, offset)
	if err == nil && !changed { // what damaged it may have been the way
		r.forget(f, offset, offset+int64(len(buf)))
		changed, err = r.bring(f, buf, offset)
	}
	if err != nil {
		return false, r.explain(f, err)
	}
	if !changed {
		r.d.log.Warn("what the remote directory has of a file is damaged", "remote", r.d.uri, "file", f.Name, "offset", offset)
	}
	return changed, nil
}

// explain says what can be done about bytes that cannot be fetched.
func (r *Reading) explain(f *arrivingFile, err error) error {
	return errkind.As(errkind.IO, fmt.Errorf("%s has not arrived as a whole, and what is read of it cannot be fetched from %s: %w; make the remote directory reachable, or bring all of the model to this machine by `aibox restore`", path.Base(f.Name), r.d.uri, err))
}

// isWhole reports whether the process that brings the file has verified it.
func (r *Reading) isWhole(f *arrivingFile) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refreshLocked(); err != nil {
		return false, err
	}
	return f.whole.Load(), nil
}

// look returns the first copy of the record that there is; nil: there is none, because everything
// has arrived.
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
	lacking := func(string) bool { return false }
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
		lacking = func(name string) bool { return slices.Contains(rec.Lacking, name) }
	}
	r.seen = now
	for _, f := range r.files {
		if !lacking(f.Name) {
			f.whole.Store(true)
		}
	}
	return nil
}

// readWhole reads a file that is whole by now.
func (r *Reading) readWhole(name string, buf []byte, offset int64) (bool, error) {
	f, err := os.Open(r.find(name))
	if err != nil {
		return false, err
	}
	_, err = f.ReadAt(buf, offset)
	return err == nil, errors.Join(err, f.Close())
}

// bring puts the bytes of a file from an offset on into buf, and reports whether buf had others.
func (r *Reading) bring(f *arrivingFile, buf []byte, offset int64) (changed bool, err error) {
	f.each(offset, offset+int64(len(buf)), func(p *arrivingPart, i int) bool {
		at := p.offset + int64(i)*chunkBytes // of the chunk
		from, to := max(offset, at), min(offset+int64(len(buf)), at+p.chunk(i))
		var other bool
		other, err = r.copyChunk(f, p, i, from-at, buf[from-offset:to-offset])
		changed = changed || other
		return err == nil
	})
	return changed, err
}

// copyChunk copies bytes of a chunk, from an offset in it on, and reports whether they are others
// than those in buf.
func (r *Reading) copyChunk(f *arrivingFile, p *arrivingPart, i int, from int64, buf []byte) (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ahead := r.aheadLocked(f, p, i)
	for {
		c := r.lookLocked(p, i)
		switch {
		case c != nil && c.busy:
			r.cond.Wait()
			continue
		case c != nil:
			r.stats.Hits++
			r.fetchAheadLocked(f, p, i, ahead)
		default:
			if c = r.claimLocked(p, i); c == nil {
				r.cond.Wait()
				continue
			}
			r.fetchAheadLocked(f, p, i, ahead)
			if err := r.fetchLocked(c, f, p, i); err != nil {
				return false, err
			}
		}
		r.clock++
		c.used = r.clock
		have := c.data[from:][:len(buf)]
		changed = !bytes.Equal(have, buf)
		copy(buf, have)
		return changed, nil
	}
}

// aheadLocked notes that a chunk is asked for, and returns how many of those after it are worth
// fetching: twice as many as were asked for one after the other before it, unless that takes much of
// the cache. REQUIRES: r.mu is held.
func (r *Reading) aheadLocked(f *arrivingFile, p *arrivingPart, i int) int {
	run, at := r.runs[f], p.offset+int64(i)*chunkBytes
	end := at + p.chunk(i)
	switch {
	case run.length > 0 && run.end == end: // once more
	case run.length > 0 && run.end == at:
		run.length++
	default:
		run.length = 1
	}
	run.end = end
	r.runs[f] = run
	return min(2*(run.length-1), readingFetches-1, r.places/4)
}

// fetchAheadLocked begins to fetch n chunks after one, as far as they are not in the cache and there is
// room for them. REQUIRES: r.mu is held.
func (r *Reading) fetchAheadLocked(f *arrivingFile, p *arrivingPart, i, n int) {
	at := p.offset + int64(i)*chunkBytes + p.chunk(i)
	f.each(at, f.Bytes, func(p *arrivingPart, i int) bool {
		if n--; n < 0 || r.ctx.Err() != nil {
			return false
		}
		if r.lookLocked(p, i) != nil {
			return true
		}
		c := r.claimLocked(p, i)
		if c == nil {
			return false
		}
		r.ahead.Go(func() {
			defer panics.Exit("fetching what is read next")
			r.mu.Lock()
			defer r.mu.Unlock()
			_ = r.fetchLocked(c, f, p, i) // who asks for it tries again, and says so
		})
		return true
	})
}

// lookLocked is a chunk in the cache; nil: it is not there. REQUIRES: r.mu is held.
func (r *Reading) lookLocked(p *arrivingPart, i int) *readChunk {
	for _, c := range r.chunks {
		if c.part == p && c.i == i {
			return c
		}
	}
	return nil
}

// claimLocked is a place in the cache for a chunk that the caller fetches; nil: so many are being
// fetched already. REQUIRES: r.mu is held.
func (r *Reading) claimLocked(p *arrivingPart, i int) *readChunk {
	if r.busy == readingFetches {
		return nil
	}
	c := r.freeLocked()
	if c != nil {
		r.busy++
		r.clock++
		c.part, c.i, c.busy, c.used = p, i, true, r.clock
	}
	return c
}

// freeLocked is a place in the cache: a new one, or that of the chunk that was used least
// recently; nil: all are being fetched. REQUIRES: r.mu is held.
func (r *Reading) freeLocked() (free *readChunk) {
	if len(r.chunks) < r.places {
		free = &readChunk{data: make([]byte, chunkBytes)}
		r.chunks = append(r.chunks, free)
		r.stats.CacheBytes += chunkBytes
		return free
	}
	for _, c := range r.chunks {
		if !c.busy && (free == nil || c.used < free.used) {
			free = c
		}
	}
	return free
}

// fetchLocked fetches a chunk into a place in the cache that was claimed for it. REQUIRES: r.mu is
// held; it is released meanwhile.
func (r *Reading) fetchLocked(c *readChunk, f *arrivingFile, p *arrivingPart, i int) error {
	r.mu.Unlock()
	err := r.d.attempts(f.Name, func() error {
		s := partStream{d: r.d, ctx: r.ctx, p: p.Part}
		return errors.Join(s.read(int64(i)*chunkBytes, c.data[:p.chunk(i)]), s.close())
	}, func() {})
	r.mu.Lock()
	c.busy = false
	r.busy--
	r.cond.Broadcast()
	if err != nil {
		c.part, c.used = nil, 0
		return err
	}
	r.stats.Fetches++
	r.stats.FetchedBytes += p.chunk(i)
	return nil
}

// forget empties the cache of chunks that have the bytes [from, to) of a file.
func (r *Reading) forget(f *arrivingFile, from, to int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.each(from, to, func(p *arrivingPart, i int) bool {
		if c := r.lookLocked(p, i); c != nil && !c.busy {
			c.part, c.used = nil, 0
		}
		return true
	})
}
