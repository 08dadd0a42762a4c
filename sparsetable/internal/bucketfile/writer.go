package bucketfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
)

// run is the directory's goroutine. It writes queued buffers in order and deletes files.
func (d *directory) run() {
	defer panics.Exit("writing bucket files")
	for {
		d.deleteQueued()
		d.mu.Lock()
		closing := d.closing
		b := d.nextLocked()
		d.mu.Unlock()
		switch {
		case closing:
			return
		case b == nil:
			<-d.wakeups
		default:
			d.written(b, d.write(b))
		}
	}
}

// nextLocked returns the buffer to write next, or nil if there is none. REQUIRES: d.mu is
// held.
func (d *directory) nextLocked() *appendBuffer {
	queue, w := d.appends.queue, &d.writes
	if len(queue) == 0 || queue[0].open > 0 || w.syncErr != nil || w.failed != nil && !w.retry {
		return nil
	}
	return queue[0]
}

// write writes one buffer; before the file's first buffer, it creates the file. The bytes of the
// buffer no longer change, and no other goroutine writes to the directory's files.
func (d *directory) write(b *appendBuffer) error {
	f := b.file
	if f.handle == nil {
		handle, err := d.dev.Create(f.name)
		if err != nil {
			return fmt.Errorf("bucketfile: create: %w", err)
		}
		f.handle = handle
		d.mu.Lock()
		d.writes.newNames = true
		d.mu.Unlock()
	}
	if _, err := f.handle.WriteAt(b.mem[:b.used], b.base); err != nil {
		return fmt.Errorf("bucketfile: write: %w", err)
	}
	return nil
}

// written removes a written buffer from the queue, or records the error of its write.
func (d *directory) written(b *appendBuffer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.cond.Broadcast()
	w := &d.writes
	w.retry = false
	if err != nil {
		if blockio.IsFull(err) {
			err = fmt.Errorf("%w in %s: %w", ErrNoSpace, blockio.Left(d.dev), err)
		}
		if w.failed == nil {
			d.set.opts.Logger.Warn("bucket file: a write failed; its data stays in memory, and the write is tried again", "dir", d.dev.Dir(), "error", err)
		}
		w.failed = err
		return
	}
	w.failed = nil
	w.done = b.number
	d.appends.queue = slices.Delete(d.appends.queue, 0, 1)
	w.unsynced[b.file] = true
	b.file.written.Store(b.base + int64(b.used))
	d.set.appends.Put(b.mem)
	b.mem = nil
	d.set.unpin(b.file)
}

// Flush makes every bucket durable whose Commit returned before the call. It flushes the
// directories in parallel and returns all their errors; after an error, no bucket may be assumed to
// be durable. It waits for open Appenders.
func (s *Set) Flush(ctx context.Context) error {
	errs := make([]error, len(s.dirs))
	var all sync.WaitGroup
	for i, d := range s.dirs {
		all.Go(func() {
			defer panics.Exit("flushing bucket files")
			errs[i] = d.flush(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (d *directory) flush(ctx context.Context) error {
	d.flushing.Lock()
	defer d.flushing.Unlock()
	files, newNames, err := d.drain(ctx)
	if err != nil {
		return fmt.Errorf("bucketfile: flush %s: %w", d.dev.Dir(), err)
	}
	for _, f := range files {
		if err == nil {
			if err = f.handle.Sync(); err != nil {
				err = fmt.Errorf("bucketfile: sync: %w", err)
			}
		}
	}
	if err == nil && newNames {
		if err = d.dev.SyncDir(); err != nil {
			err = fmt.Errorf("bucketfile: sync directory %s: %w", d.dev.Dir(), err)
		}
	}
	for _, f := range files {
		d.set.unpin(f)
	}
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.writes.syncErr == nil {
			d.writes.syncErr = err
		}
		d.cond.Broadcast()
	}
	return err
}

// drain waits until all buffers are written. It pins and returns the files that must be synced.
func (d *directory) drain(ctx context.Context) (files []*file, newNames bool, err error) {
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.cond.Broadcast()
	})
	defer stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sealLocked()
	w := &d.writes
	target := w.done
	if n := len(d.appends.queue); n > 0 {
		target = d.appends.queue[n-1].number
	}
	// An earlier error does not decide the outcome of this call: the buffer is written again, and
	// only the error of that attempt counts.
	if w.failed != nil {
		w.retry = true
		d.wakeUp()
	}
	for w.done < target {
		switch {
		case ctx.Err() != nil:
			return nil, false, ctx.Err()
		case d.closing:
			return nil, false, ErrClosed
		case w.syncErr != nil:
			return nil, false, w.syncErr
		case w.failed != nil && !w.retry:
			return nil, false, w.failed
		}
		d.cond.Wait()
	}
	if d.closing {
		return nil, false, ErrClosed
	}
	if w.syncErr != nil {
		return nil, false, w.syncErr
	}
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	for f := range w.unsynced {
		if !f.deleting {
			f.pins++
			files = append(files, f)
		}
	}
	clear(w.unsynced)
	newNames, w.newNames = w.newNames, false
	return files, newNames, nil
}
