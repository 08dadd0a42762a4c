package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"aibox/internal/atomicfile"
	"aibox/internal/directfile"
	"aibox/internal/diskfault"
	"aibox/internal/panics"
)

// Arriving are files that are used before all of their bytes have been fetched, see the
// package's comment. It is a sparsetable.Source.
type Arriving struct {
	d      *Directory
	id     string // of the manifest
	path   string // of the record
	files  map[string]*arrivingFile
	order  []string
	again  bool // an earlier process may have brought bytes
	opened time.Time
	total  int64 // bytes of files
	ctx    context.Context
	stop   context.CancelFunc
	ended  chan struct{} // Start's goroutine has ended; closed
	demand chan struct{} // slots of fetches that somebody waits for

	recording sync.Mutex // held while the record is written; locked before mu

	mu   sync.Mutex
	cond sync.Cond // on mu: a state has changed, or urgent

	// Under mu:

	record  arrivingRecord
	started bool
	urgent  int // fetches that somebody waits for
	arrived int64
	fetched int64
	damaged int           // parts that did not match their checksums
	err     error         // the files cannot become whole
	whole   time.Duration // since opened; 0: not yet
}

// ArrivingStats says how far the files of an Arriving are.
type ArrivingStats struct {
	TotalBytes   int64   // of the files that lacked bytes at first
	ArrivedBytes int64   // of those that are there
	FetchedBytes int64   // that were brought
	Again        int     // parts that were damaged at first
	WholeSeconds float64 // that it took until all was there; 0: it is not yet
}

// chunkBytes is how much is fetched at once for a reader who waits: a disk or a DataNode
// sends it in a few milliseconds, most of which it takes to find it.
const chunkBytes = 1 << 20

// chunkState says whether the bytes of a chunk are there.
type chunkState uint8

const (
	absent chunkState = iota
	coming            // somebody fetches it
	here
)

// arrivingFile is a file that lacks bytes.
type arrivingFile struct {
	*File
	out   *directfile.File
	parts []arrivingPart
	whole atomic.Bool // nothing is lacking, and all was verified

	removed bool // under Arriving.mu
}

type arrivingPart struct {
	*Part
	offset int64        // in the file
	chunks []chunkState // under Arriving.mu
}

// arrivingRecord says which files lack bytes, and where they are.
type arrivingRecord struct {
	URI      string          `json:"uri"`
	Manifest json.RawMessage `json:"manifest"` // as in its own file, with its checksum
	Lacking  []string        `json:"lacking"`  // names of files
	Begun    bool            `json:"begun"`    // bytes of them may be there
	Damaged  string          `json:"damaged,omitempty"`
}

type arrivingRecordFile struct {
	SHA256 string          `json:"sha256"` // of Record without white space between its tokens
	Record json.RawMessage `json:"record"`
}

func (r *arrivingRecord) write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	sum, err := compactSum(data)
	if err != nil {
		return err
	}
	if data, err = json.Marshal(arrivingRecordFile{sum, data}); err != nil {
		return err
	}
	f, err := atomicfile.Create(path, path+".tmp", os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Commit()
	}
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	return nil
}

// readRecord returns the record at path and its manifest; nil if there is none. If it cannot be used,
// the error is a *DamagedError.
func readRecord(path string) (*arrivingRecord, *Manifest, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	r, m, err := decodeRecord(data)
	if err != nil {
		return nil, nil, &DamagedError{path, err.Error()}
	}
	return r, m, nil
}

func decodeRecord(data []byte) (*arrivingRecord, *Manifest, error) {
	var f arrivingRecordFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, nil, err
	}
	if sum, err := compactSum(f.Record); err != nil || sum != f.SHA256 {
		return nil, nil, fmt.Errorf("its SHA-256 is not the one that was recorded")
	}
	r := new(arrivingRecord)
	if err := json.Unmarshal(f.Record, r); err != nil {
		return nil, nil, err
	}
	m, err := decode(r.Manifest)
	return r, m, err
}

// Announce makes the files of m that are late, with their sizes and without their bytes, at
// the paths that place returns, and the record at path that says so. Files that are whole
// stay. After an interruption, another call goes on.
func (d *Directory) Announce(m *Manifest, late func(*File) bool, place func(*File) string, path string) error {
	r, old, err := readRecord(path)
	var damaged *DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return err
	}
	known := r != nil && old.ID == m.ID
	if !known {
		manifest, encodeErr := m.encode()
		if encodeErr != nil {
			return encodeErr
		}
		r = &arrivingRecord{URI: d.uri, Manifest: manifest}
		for i := range m.Files {
			f := &m.Files[i]
			if info, e := os.Stat(place(f)); late(f) && (e != nil || info.Size() != f.Bytes || err != nil) {
				r.Lacking = append(r.Lacking, f.Name)
			}
		}
		if len(r.Lacking) == 0 {
			return nil
		}
		if err := r.write(path); err != nil { // before a file has its name
			return err
		}
	}
	for i := range m.Files {
		if f := &m.Files[i]; slices.Contains(r.Lacking, f.Name) {
			if err := makeHole(place(f), f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeHole makes a file of zeros, with the space that it needs.
func makeHole(at string, size int64) error {
	if err := diskfault.At("create", at); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil && size > 0 {
		if err = unix.Fallocate(int(f.Fd()), 0, 0, size); errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
			err = nil
		} else if err != nil {
			err = &os.PathError{Op: "reserve space for", Path: at, Err: err}
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// AnnouncedIn returns what the record at path says: the URI of the remote directory, the id
// of the manifest, and why the files cannot be completed, if that is known. uri is "" if
// there is no record.
func AnnouncedIn(path string) (uri, id, damaged string, err error) {
	r, m, err := readRecord(path)
	if r == nil {
		return "", "", "", err
	}
	return r.URI, m.ID, r.Damaged, nil
}

// OpenArriving opens the files that the record at path says lack bytes; find returns where
// the file of a base name is, "" if it was deleted since. Nothing is fetched but what is
// awaited, until Start.
func (d *Directory) OpenArriving(path string, find func(base string) string) (_ *Arriving, err error) {
	r, m, err := readRecord(path)
	if err != nil {
		return nil, err
	}
	a := &Arriving{d: d, id: m.ID, path: path, record: *r, again: r.Begun, files: make(map[string]*arrivingFile), opened: time.Now(), demand: make(chan struct{}, 2*parallel), ended: make(chan struct{})}
	a.cond.L = &a.mu
	a.ctx, a.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			a.stop()
			err = errors.Join(err, a.closeFiles())
		}
	}()
	for i := range m.Files {
		if slices.Contains(r.Lacking, m.Files[i].Name) {
			if err := a.add(&m.Files[i], find); err != nil {
				return nil, err
			}
		}
	}
	if r.Begun {
		return a, nil
	}
	return a, a.note(func(r *arrivingRecord) { r.Begun = true })
}

func (a *Arriving) add(file *File, find func(base string) string) error {
	base := path.Base(file.Name)
	at := find(base)
	if at == "" {
		return nil
	}
	out, err := directfile.Open(at, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f := &arrivingFile{File: file, out: out}
	for i, offset := 0, int64(0); i < len(file.Parts); i++ {
		p := &file.Parts[i]
		f.parts = append(f.parts, arrivingPart{Part: p, offset: offset, chunks: make([]chunkState, (p.Bytes+chunkBytes-1)/chunkBytes)})
		offset += p.Bytes
	}
	a.files[base] = f
	a.order = append(a.order, base)
	a.total += file.Bytes
	return nil
}

func (a *Arriving) closeFiles() error {
	var errs []error
	for _, f := range a.files {
		errs = append(errs, f.out.Close())
	}
	return errors.Join(errs...)
}

// ID is that of the manifest.
func (a *Arriving) ID() string { return a.id }

// Lacks implements sparsetable.Source.
func (a *Arriving) Lacks(name string) bool {
	f := a.files[name]
	return f != nil && !f.whole.Load()
}

// Here implements sparsetable.Source.
func (a *Arriving) Here(name string, from, to int64) bool {
	f := a.files[name]
	if f == nil || f.whole.Load() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.each(from, to, func(p *arrivingPart, i int) bool { return p.chunks[i] == here })
}

// each calls fn with the chunks that have the bytes [from, to) until it returns false.
func (f *arrivingFile) each(from, to int64, fn func(p *arrivingPart, i int) bool) bool {
	for i := range f.parts {
		p := &f.parts[i]
		first, last := max(from, p.offset)-p.offset, min(to, p.offset+p.Bytes)-p.offset
		for at := first &^ (chunkBytes - 1); at < last; at += chunkBytes {
			if !fn(p, int(at/chunkBytes)) {
				return false
			}
		}
	}
	return true
}

// Await implements sparsetable.Source.
func (a *Arriving) Await(name string, from, to int64) error {
	f := a.files[name]
	if f == nil || f.whole.Load() {
		return nil
	}
	var err error
	f.each(from, to, func(p *arrivingPart, i int) bool {
		err = a.now(f, p, i)
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("%s has not arrived: %w", name, err)
	}
	return nil
}

// now brings a chunk that somebody waits for.
func (a *Arriving) now(f *arrivingFile, p *arrivingPart, i int) error {
	if ok, err := a.claim(p, i, true); ok || err != nil {
		return err
	}
	a.mu.Lock()
	a.urgent++
	a.mu.Unlock()
	a.demand <- struct{}{}
	err := a.chunk(f, p, i)
	<-a.demand
	a.mu.Lock()
	if a.urgent--; a.urgent == 0 {
		a.cond.Broadcast()
	}
	a.mu.Unlock()
	a.leave(p, i, err)
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		a.fail(err)
	}
	return err
}

// claim waits until nobody fetches the chunk, and reports whether it is there; if not, the
// caller fetches it and calls leave.
func (a *Arriving) claim(p *arrivingPart, i int, urgently bool) (have bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p.chunks[i] == coming || !urgently && a.urgent > 0 && p.chunks[i] == absent {
		a.cond.Wait()
	}
	if p.chunks[i] == here {
		return true, nil
	}
	if a.err != nil {
		return false, a.err
	}
	if a.ctx.Err() != nil {
		return false, context.Cause(a.ctx)
	}
	p.chunks[i] = coming
	return false, nil
}

// leave says what became of a chunk that was claimed.
func (a *Arriving) leave(p *arrivingPart, i int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.chunks[i] = absent
	if err == nil {
		p.chunks[i] = here
		a.arrived += p.chunk(i)
		a.fetched += p.chunk(i)
	}
	a.cond.Broadcast()
}

// chunk is the size of a chunk.
func (p *arrivingPart) chunk(i int) int64 { return min(chunkBytes, p.Bytes-int64(i)*chunkBytes) }

// chunk fetches one chunk.
func (a *Arriving) chunk(f *arrivingFile, p *arrivingPart, i int) error {
	s := partStream{a: a, p: p}
	buf := directfile.Memory(int(p.chunk(i)))
	err := s.read(int64(i)*chunkBytes, buf)
	if err == nil {
		err = f.write(buf, p.offset+int64(i)*chunkBytes)
	}
	return errors.Join(err, s.close())
}

func (f *arrivingFile) write(b []byte, offset int64) error {
	if err := diskfault.At("write", f.out.Name()); err != nil {
		return err
	}
	_, err := f.out.WriteAt(b, offset)
	return err
}

func (f *arrivingFile) sync() error {
	if err := diskfault.At("sync", f.out.Name()); err != nil {
		return err
	}
	return f.out.Sync()
}

// partStream reads an object, in ascending order of offsets.
type partStream struct {
	a  *Arriving
	p  *arrivingPart
	r  io.ReadCloser
	at int64
}

// read fills buf with the bytes from an offset on.
func (s *partStream) read(offset int64, buf []byte) error {
	if s.r != nil && s.at != offset {
		if err := s.close(); err != nil {
			return err
		}
	}
	d := s.a.d
	if s.r == nil {
		var err error
		if s.r, err = d.openObject(s.a.ctx, s.p.Part, offset); err != nil {
			return err
		}
	}
	n, err := io.ReadFull(&limitedReader{s.a.ctx, d.limit, s.r}, buf)
	s.at = offset + int64(n)
	if err != nil {
		return tooShort(d.objectURI(s.p.Part), err)
	}
	return nil
}

func (s *partStream) close() error {
	if s.r == nil {
		return nil
	}
	err := s.r.Close()
	s.r = nil
	return err
}

// Removed implements sparsetable.Source.
func (a *Arriving) Removed(name string) {
	if f := a.files[name]; f != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		f.removed = true
	}
}

// Err returns why the files cannot become whole; nil: they can.
func (a *Arriving) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Stats says how far the files are.
func (a *Arriving) Stats() ArrivingStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return ArrivingStats{TotalBytes: a.total, ArrivedBytes: a.arrived, FetchedBytes: a.fetched, Again: a.damaged, WholeSeconds: a.whole.Seconds()}
}

// Start fetches, in the background, all that lacks, when nobody waits for anything else.
func (a *Arriving) Start() {
	a.mu.Lock()
	a.started = true
	a.mu.Unlock()
	go func() {
		defer panics.Exit("fetching files in the background")
		defer close(a.ended)
		for pause := firstPause; ; pause = min(2*pause, longestPause) {
			err := a.fetchAll()
			if err == nil || a.ctx.Err() != nil || a.Err() != nil {
				return
			}
			a.d.log.Warn("files cannot be fetched from the remote directory now; it is tried again", "remote", a.d.uri, "seconds", pause.Seconds(), "error", err)
			_ = sleep(a.ctx, pause) // it was stopped
		}
	}()
}

// Pauses after a fetch in the background has failed.
const firstPause, longestPause = time.Second, time.Minute

func (a *Arriving) fetchAll() error {
	g, ctx := errgroup.WithContext(a.ctx)
	g.SetLimit(parallel)
	for _, base := range a.order {
		f := a.files[base]
		if f.whole.Load() {
			continue
		}
		g.Go(func() error {
			return panics.Do("fetching "+f.Name, func() error {
				if ctx.Err() != nil {
					return nil // another file's error is returned
				}
				return a.complete(f)
			})
		})
	}
	if err := g.Wait(); err != nil {
		var damaged *DamagedError
		if errors.As(err, &damaged) {
			a.fail(err)
		}
		return err
	}
	if err := a.note(func(*arrivingRecord) {}); err != nil { // all of them may have been deleted before
		return err
	}
	a.mu.Lock()
	a.whole = time.Since(a.opened)
	s := a.fetched
	a.mu.Unlock()
	a.d.log.Info("all files have arrived from the remote directory", "remote", a.d.uri, "fetched_bytes", s, "seconds", a.whole.Seconds())
	return nil
}

// errRemoved says that a file is not needed any more.
var errRemoved = errors.New("the file was removed")

// complete fetches what a file lacks, verifies all of it, and says so in the record.
func (a *Arriving) complete(f *arrivingFile) error {
	var err error
	for i := range f.parts {
		if err = a.part(f, &f.parts[i]); err != nil {
			break
		}
		s := a.Stats()
		a.d.opts.Progress(s.ArrivedBytes, s.TotalBytes)
	}
	if err == nil {
		err = f.sync()
	}
	if err != nil && !errors.Is(err, errRemoved) {
		return err
	}
	f.whole.Store(true)
	return a.note(func(r *arrivingRecord) {
		r.Lacking = slices.DeleteFunc(slices.Clone(r.Lacking), func(name string) bool { return name == f.Name })
	})
}

// note changes the record, and deletes it when nothing is lacking.
func (a *Arriving) note(change func(*arrivingRecord)) error {
	a.recording.Lock()
	defer a.recording.Unlock()
	a.mu.Lock()
	change(&a.record)
	r := a.record
	a.mu.Unlock()
	done := true
	for _, f := range a.files {
		done = done && f.whole.Load()
	}
	if !done {
		return r.write(a.path)
	}
	if err := diskfault.At("remove", a.path); err != nil {
		return err
	}
	_ = os.Remove(a.path + ".tmp") // of a process that was killed
	if err := os.Remove(a.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(a.path))
}

// stream brings what a part lacks and verifies the whole part.
func (a *Arriving) stream(f *arrivingFile, p *arrivingPart) (err error) {
	s := partStream{a: a, p: p}
	defer func() { err = errors.Join(err, s.close()) }()
	sum := sha256.New()
	buf := directfile.Memory(int(min(p.Bytes, chunkBytes)))
	for i := range p.chunks {
		if a.wasRemoved(f) {
			return errRemoved
		}
		at, b := int64(i)*chunkBytes, buf[:p.chunk(i)]
		have, err := a.claim(p, i, false)
		switch {
		case err != nil:
			return err
		case have:
			_, err = f.out.ReadAt(b, p.offset+at)
		default:
			if err = s.read(at, b); err == nil {
				err = f.write(b, p.offset+at)
			}
			a.leave(p, i, err)
		}
		if err != nil {
			return err
		}
		sum.Write(b)
	}
	return a.d.matches(p.Part, sum)
}

func (a *Arriving) wasRemoved(f *arrivingFile) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.removed
}

// part fetches what a part lacks and verifies it, again if it does not match its checksum.
func (a *Arriving) part(f *arrivingFile, p *arrivingPart) error {
	if a.again && hasPart(f.out.File, p.offset, p.Part) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range p.chunks {
			if p.chunks[i] == absent {
				p.chunks[i] = here
				a.arrived += p.chunk(i)
			}
		}
		return nil
	}
	for attempt := 1; ; attempt++ {
		err := a.stream(f, p)
		var damaged *DamagedError
		if !errors.As(err, &damaged) || attempt == fetchAttempts {
			return err
		}
		a.d.log.Warn("a file of the remote directory is damaged; it is fetched again", "file", f.Name, "attempt", attempt, "error", err)
		a.mu.Lock()
		a.damaged++
		for i := range p.chunks {
			if p.chunks[i] == here {
				p.chunks[i] = absent
				a.arrived -= p.chunk(i)
			}
		}
		a.mu.Unlock()
	}
}

// Distrust says that the files do not have the right bytes, also to the next process.
func (a *Arriving) Distrust(err error) { a.fail(err) }

// fail says that the files cannot become whole, also to the next process.
func (a *Arriving) fail(err error) {
	a.mu.Lock()
	first := a.err == nil
	if first {
		a.err = err
	}
	a.cond.Broadcast()
	a.mu.Unlock()
	if !first {
		return
	}
	if e := a.note(func(r *arrivingRecord) { r.Damaged = err.Error() }); e != nil {
		a.d.log.Warn("the record of files that have not arrived could not be written", "file", a.path, "error", e)
	}
}

// Wait waits until all files are there, and verified.
func (a *Arriving) Wait(ctx context.Context) error {
	select {
	case <-a.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := a.Err(); err != nil {
		return err
	}
	return context.Cause(a.ctx)
}

// Stop ends fetching. What is awaited then fails.
func (a *Arriving) Stop() error {
	a.stop()
	a.mu.Lock()
	a.cond.Broadcast()
	started := a.started
	a.mu.Unlock()
	if started {
		<-a.ended
	}
	return a.closeFiles()
}
