package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"aibox/internal/directfile"
)

// Arriving are files that are used before all of their bytes have been fetched: see the package
// documentation. It is a sparsetable.Source.
type Arriving struct {
	d       *Directory
	id      string // of the manifest
	records *records
	files   map[string]*arrivingFile
	order   []string // names of files, in the order of the manifest
	again   bool     // an earlier process may have fetched bytes
	work    fetchWork

	mu   sync.Mutex
	cond sync.Cond // on mu; signals that the state of a chunk, or urgent, has changed

	// Under mu:

	urgent int // fetches that a reader waits for
	stats  ArrivingStats
	err    error // why the files cannot become complete
}

// fetchWork controls fetching.
type fetchWork struct {
	ctx    context.Context
	stop   context.CancelFunc
	began  time.Time
	demand chan struct{} // slots for fetches that a reader waits for

	started bool          // the background has started; under Arriving.mu
	ended   chan struct{} // closed when its goroutine has ended
}

func newFetchWork() fetchWork {
	w := fetchWork{began: time.Now(), demand: make(chan struct{}, 2*parallel), ended: make(chan struct{})}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// ArrivingStats is the progress of an Arriving.
type ArrivingStats struct {
	TotalBytes   int64   // of the files that missed bytes at first
	ArrivedBytes int64   // of these, those that have arrived
	FetchedBytes int64   // fetched
	Again        int     // how often something was damaged and was fetched again
	WholeSeconds float64 // until everything had arrived; 0 if it has not yet
}

// OpenArriving opens the files that miss bytes according to the record with copies at paths, in
// directories of one or several tables. find returns the path of the file with a base name, "" if
// it has been deleted. Several directories may have the same files, as links. Until Start, only
// awaited bytes are fetched. Nobody else may write the files meanwhile.
func (d *Directory) OpenArriving(paths []string, find func(base string) string) (_ *Arriving, err error) {
	rs, m, err := readRecords(paths)
	if err != nil {
		return nil, err
	}
	if rs == nil {
		return nil, &DamagedError{strings.Join(paths, ", "), "it is gone"}
	}
	a := &Arriving{d: d, id: m.ID, records: rs, again: rs.Begun, files: make(map[string]*arrivingFile), work: newFetchWork()}
	a.cond.L = &a.mu
	defer func() {
		if err != nil {
			a.work.stop()
			err = errors.Join(err, a.closeFiles())
		}
	}()
	for i := range m.Files {
		f := &m.Files[i]
		if slices.Contains(rs.Lacking, f.Name) {
			if err := a.add(f, find); err != nil {
				return nil, err
			}
		}
	}
	return a, a.note(func(r *arrivingRecord) bool {
		before := r.Begun
		r.Begun = true
		return !before
	})
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
	f := newArrivingFile(file)
	f.out = out
	a.files[base] = f
	a.order = append(a.order, base)
	a.stats.TotalBytes += file.Bytes
	return nil
}

func (a *Arriving) closeFiles() error {
	var errs []error
	for _, f := range a.files {
		errs = append(errs, f.out.Close())
	}
	return errors.Join(errs...)
}

// ID returns the ID of the manifest.
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

// now fetches a chunk that a reader waits for.
func (a *Arriving) now(f *arrivingFile, p *arrivingPart, i int) error {
	if ok, err := a.claim(p, i, true); ok || err != nil {
		return err
	}
	a.mu.Lock()
	a.urgent++
	a.mu.Unlock()
	a.work.demand <- struct{}{}
	err := a.chunkOrAgain(f, p, i)
	<-a.work.demand
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

// claim waits until nobody fetches the chunk, and reports whether it is there. If not, the caller
// must fetch it and call leave.
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
	if a.work.ctx.Err() != nil {
		return false, context.Cause(a.work.ctx)
	}
	p.chunks[i] = coming
	return false, nil
}

// leave records the result of fetching a claimed chunk.
func (a *Arriving) leave(p *arrivingPart, i int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.chunks[i] = absent
	if err == nil {
		p.chunks[i] = here
		a.stats.ArrivedBytes += p.chunk(i)
		a.stats.FetchedBytes += p.chunk(i)
	}
	a.cond.Broadcast()
}

// Again implements sparsetable.Source.
func (a *Arriving) Again(name string, buf []byte, offset int64) (bool, error) {
	f := a.files[name]
	if f == nil {
		return false, nil
	}
	if !f.whole.Load() { // else it may have been verified and repaired after it was read
		to := offset + int64(len(buf))
		a.d.log.Warn("a fetched part of a file of the remote directory is damaged; it is fetched again", "file", f.Name, "from", offset, "to", to)
		a.mu.Lock()
		a.stats.Again++
		f.each(offset, to, func(p *arrivingPart, i int) bool {
			a.forgetLocked(p, i)
			return true
		})
		a.mu.Unlock()
		if err := a.Await(name, offset, to); err != nil {
			return false, err
		}
	}
	_, err := f.out.ReadAt(buf, offset)
	return err == nil, err
}

// forgetLocked marks a chunk as absent because its bytes are wrong. REQUIRES: a.mu is held.
func (a *Arriving) forgetLocked(p *arrivingPart, i int) {
	if p.chunks[i] == here {
		p.chunks[i] = absent
		a.stats.ArrivedBytes -= p.chunk(i)
	}
}

// Err returns why the files cannot become complete; nil if they can.
func (a *Arriving) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Stats returns the progress.
func (a *Arriving) Stats() ArrivingStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// MarkDamaged records that the files do not have the right bytes, also for the next process.
func (a *Arriving) MarkDamaged(err error) { a.fail(err) }

// end records that the files cannot become complete in this process.
func (a *Arriving) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = cmp.Or(a.err, err)
	a.cond.Broadcast()
}

// fail records that the files cannot become complete, also for the next process.
func (a *Arriving) fail(err error) {
	a.end(err)
	if e := a.note(func(r *arrivingRecord) bool {
		known := r.Damaged
		r.Damaged = cmp.Or(known, err.Error())
		return known == ""
	}); e != nil {
		a.d.log.Warn("the record of files that have not arrived could not be written", "error", e)
	}
}

// Complete fetches and verifies everything that is missing. After an error other than
// *DamagedError, what was fetched stays, and another Arriving continues from there.
func (a *Arriving) Complete(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	defer context.AfterFunc(ctx, a.work.stop)()
	err := a.fetchAll()
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	return err
}

// Stop ends fetching. Waiting readers get an error.
func (a *Arriving) Stop() error {
	a.work.stop()
	a.mu.Lock()
	a.cond.Broadcast()
	started := a.work.started
	a.mu.Unlock()
	if started {
		<-a.work.ended
	}
	return a.closeFiles()
}
