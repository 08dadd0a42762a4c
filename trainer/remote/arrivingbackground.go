package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"aibox/internal/directfile"
	"aibox/internal/panics"
)

// Start fetches everything that is missing, in the background, while no reader waits. A second call
// does nothing.
func (a *Arriving) Start() {
	a.mu.Lock()
	before := a.work.started
	a.work.started = true
	a.mu.Unlock()
	if before {
		return
	}
	go func() {
		defer panics.Exit("fetching files in the background")
		defer close(a.work.ended)
		onDisk := 0 // failed attempts in a row because of the disk
		for pause := firstPause; ; pause = min(2*pause, longestPause) {
			err := a.fetchAll()
			if err == nil || a.work.ctx.Err() != nil || a.Err() != nil {
				return
			}
			if onDisk++; !errors.As(err, new(*diskError)) {
				onDisk = 0
			} else if onDisk == diskAttempts {
				a.end(err)
				return
			}
			a.d.log.Warn("files cannot be fetched from the remote directory now; fetching is retried", "remote", a.d.uri, "seconds", pause.Seconds(), "error", err)
			_ = sleep(a.work.ctx, pause) // returns early if a was stopped
		}
	}()
}

// diskAttempts is how often in a row the disk to which files arrive may fail. Unlike a remote
// directory, it does not recover by itself.
const diskAttempts = 3

// Pauses after a failed fetch in the background.
const firstPause, longestPause = time.Second, time.Minute

func (a *Arriving) fetchAll() error {
	g, ctx := errgroup.WithContext(a.work.ctx)
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
	if err := a.note(func(*arrivingRecord) bool { return false }); err != nil { // all files may have been deleted before
		return err
	}
	a.mu.Lock()
	a.stats.WholeSeconds = time.Since(a.work.began).Seconds()
	s := a.stats
	a.mu.Unlock()
	a.d.log.Info("all files have arrived from the remote directory", "remote", a.d.uri, "fetched_bytes", s.FetchedBytes, "fetched_again", s.Again, "seconds", s.WholeSeconds)
	return nil
}

// errRemoved says that a file is no longer needed.
var errRemoved = errors.New("the file was removed")

// complete fetches what is missing from a file, verifies all of it, and updates the record.
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
	return a.note(func(r *arrivingRecord) bool {
		before := len(r.Lacking)
		r.Lacking = slices.DeleteFunc(r.Lacking, func(name string) bool { return name == f.Name })
		return len(r.Lacking) < before
	})
}

// stream fetches what is missing from a part and verifies the whole part.
func (a *Arriving) stream(f *arrivingFile, p *arrivingPart) (err error) {
	s := partStream{d: a.d, ctx: a.work.ctx, p: p.Part}
	defer func() { err = errors.Join(err, s.close()) }()
	sum := sha256.New()
	buf := directfile.Memory(int(min(p.Bytes, chunkBytes)))
	for i := range p.chunks {
		if f.removed() {
			return errRemoved
		}
		at, b := int64(i)*chunkBytes, buf[:p.chunk(i)]
		have, err := a.claim(p, i, false)
		switch {
		case err != nil:
			return err
		case have:
			_, err = f.out.ReadAt(b, p.offset+at)
			err = onDisk(err)
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

// part fetches what is missing from a part and verifies it. If it does not match its checksum, it
// is fetched again.
func (a *Arriving) part(f *arrivingFile, p *arrivingPart) error {
	if a.again && hasPart(f.out.File, p.offset, p.Part) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range p.chunks {
			if p.chunks[i] == absent {
				p.chunks[i] = here
				a.stats.ArrivedBytes += p.chunk(i)
			}
		}
		return nil
	}
	return a.d.attempts(f.Name, func() error { return a.stream(f, p) }, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.stats.Again++
		for i := range p.chunks {
			a.forgetLocked(p, i)
		}
	})
}

// Wait waits until all files have arrived and are verified.
func (a *Arriving) Wait(ctx context.Context) error {
	select {
	case <-a.work.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := a.Err(); err != nil {
		return err
	}
	return context.Cause(a.work.ctx)
}
