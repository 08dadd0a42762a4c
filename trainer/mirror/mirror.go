package mirror

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"aibox/internal/panics"
	"aibox/trainer/remote"
)

// Snapshot is a snapshot whose files do not change until Release.
type Snapshot struct {
	Step    int64
	Upload  func(context.Context) (*remote.Published, error) // nil, nil if it no longer need be uploaded
	Release func() error
}

// Summary says what has happened to the snapshots.
type Summary struct {
	Uploaded      int64   `json:"uploaded"`
	Failed        int64   `json:"failed"` // attempts
	UploadedBytes int64   `json:"uploaded_bytes"`
	Seconds       float64 `json:"seconds"`
	LastSeconds   float64 `json:"last_seconds,omitempty"` // of the newest uploaded one
	Step          int64   `json:"step,omitempty"`         // of the newest uploaded one
	Error         string  `json:"error,omitempty"`        // of the last attempt, if it has failed
}

// Last returns how long the last upload took; 0 if there was none.
func (s *Summary) Last() time.Duration { return time.Duration(s.LastSeconds * float64(time.Second)) }

// The first and the longest pause after a failed attempt.
const (
	firstPause = 10 * time.Second
	lastPause  = 10 * time.Minute
)

// Uploader uploads snapshots until Stop.
type Uploader struct {
	what   string
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan struct{}
	// offered holds one token while a snapshot waits.
	offered chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed and replaced after each attempt
	waiting *Snapshot
	busy    bool // a snapshot is being uploaded, or will be tried again
	failing bool // an attempt has failed since the last Offer
	stopped bool
	summary Summary
}

// Start starts an Uploader. what names the things uploaded in the log, as "a snapshot".
func Start(what string, earlier Summary, log *slog.Logger) *Uploader {
	ctx, cancel := context.WithCancelCause(context.Background())
	u := &Uploader{what: what, log: log, ctx: ctx, cancel: cancel, ended: make(chan struct{}), offered: make(chan struct{}, 1), changed: make(chan struct{}), summary: earlier}
	panics.Go("uploading snapshots", u.run)
	return u
}

// Offer hands over a snapshot, which replaces one that waits.
func (u *Uploader) Offer(s *Snapshot) {
	u.mu.Lock()
	old := s
	if !u.stopped {
		old, u.waiting, u.failing = u.waiting, s, false
		select {
		case u.offered <- struct{}{}:
		default:
		}
	}
	u.mu.Unlock()
	u.release(old)
}

func (u *Uploader) release(s *Snapshot) {
	if s == nil {
		return
	}
	if err := s.Release(); err != nil {
		u.log.Warn("files of "+u.what+" could not be deleted; the next run tries again", "step", s.Step, "error", err)
	}
}

// Summary returns what has happened to the snapshots so far.
func (u *Uploader) Summary() Summary {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.summary
}

// Finish waits until everything offered is uploaded, an attempt has failed since the last Offer, or
// ctx ends. It reports whether the newest snapshot is uploaded.
func (u *Uploader) Finish(ctx context.Context) bool {
	for {
		u.mu.Lock()
		changed, idle, failed := u.changed, u.waiting == nil && !u.busy, u.failing
		u.mu.Unlock()
		if idle || failed {
			return idle && !failed
		}
		select {
		case <-changed:
		case <-u.ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Stop ends the Uploader, if necessary in the middle of an upload, and releases all files. Later
// calls do nothing.
func (u *Uploader) Stop() {
	u.mu.Lock()
	s := u.waiting
	u.waiting, u.stopped = nil, true
	u.mu.Unlock()
	u.release(s)
	u.cancel(errors.New("uploading snapshots has ended"))
	<-u.ended
}

func (u *Uploader) run() {
	defer close(u.ended)
	var s *Snapshot
	for pause := firstPause; u.ctx.Err() == nil; {
		if next := u.take(); next != nil {
			u.release(s)
			s = next
		}
		if s == nil {
			select {
			case <-u.offered:
			case <-u.ctx.Done():
			}
			continue
		}
		if u.upload(s) {
			s, pause = nil, firstPause
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-u.offered:
		case <-u.ctx.Done():
		}
		timer.Stop()
		pause = min(2*pause, lastPause)
	}
	u.release(s)
}

// take returns the waiting snapshot, nil if there is none.
func (u *Uploader) take() *Snapshot {
	u.mu.Lock()
	defer u.mu.Unlock()
	select {
	case <-u.offered:
	default:
	}
	s := u.waiting
	u.waiting = nil
	u.busy = u.busy || s != nil
	return s
}

// Failed records a failed attempt to upload or to offer a snapshot.
func (u *Uploader) Failed(step int64, err error) {
	u.mu.Lock()
	u.summary.Failed++
	u.summary.Error = err.Error()
	u.mu.Unlock()
	u.log.Warn(u.what+" could not be uploaded; training goes on, and uploading is tried again", "step", step, "error", err)
}

// upload uploads a snapshot and reports whether that is done.
func (u *Uploader) upload(s *Snapshot) bool {
	start := time.Now()
	var done *remote.Published
	err := panics.Do("uploading a snapshot", func() (err error) {
		done, err = s.Upload(u.ctx)
		return err
	})
	seconds := time.Since(start).Seconds()
	switch {
	case err == nil:
		u.release(s) // before Finish returns
	case u.ctx.Err() != nil:
		return false
	default:
		u.Failed(s.Step, err)
	}
	u.mu.Lock()
	u.summary.Seconds += seconds
	if err != nil {
		u.failing = u.waiting == nil
	} else {
		if done != nil {
			u.summary.Uploaded++
			u.summary.UploadedBytes += done.UploadedBytes
		}
		u.summary.Step, u.summary.LastSeconds, u.summary.Error = s.Step, seconds, ""
		u.busy = false
	}
	close(u.changed)
	u.changed = make(chan struct{})
	u.mu.Unlock()
	if done == nil {
		return err == nil
	}
	u.log.Info(u.what+" was uploaded", "step", s.Step, "as", done.URI, "bytes", done.UploadedBytes, "seconds", seconds)
	return true
}
