package bucketfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
)

// run is the directory's goroutine: it writes queued buffers in order and
// deletes files.
func (d *directory) run() {
	defer panics.Exit("writing bucket files")
	for {
		d.deleteDoomed()
		d.mu.Lock()
		closing := d.closing
		b := d.nextLocked()
		d.mu.Unlock()
		switch {
		case closing:
			return
		case b == nil:
			<-d.kick
		default:
			d.written(b, d.write(b))
		}
	}
}

// nextLocked returns the buffer to write next, or nil if there is none. REQUIRES: d.mu is
// held.
func (d *directory) nextLocked() *appendBuffer {
	if len(d.queue) == 0 || d.queue[0].open > 0 || d.syncErr != nil || d.writeErr != nil && !d.retry {
		return nil
	}
	return d.queue[0]
}

// write writes one buffer, and creates the file before its first buffer. The bytes of the
// buffer do not change any more, and nobody else writes to the directory's files.
func (d *directory) write(b *appendBuffer) error {
	f := b.file
	if f.handle == nil {
		handle, err := d.dev.Create(f.name)
		if err != nil {
			return fmt.Errorf("bucketfile: create: %w", err)
		}
		f.handle = handle
		d.mu.Lock()
		d.newNames = true
		d.mu.Unlock()
	}
	if _, err := f.handle.WriteAt(b.mem[:b.used], b.base); err != nil {
		return fmt.Errorf("bucketfile: write: %w", err)
	}
	return nil
}

// written removes a buffer that was written from the queue, or notes the error of its
// write.
func (d *directory) written(b *appendBuffer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.cond.Broadcast()
	d.retry = false
	if err != nil {
		if blockio.IsFull(err) {
			err = fmt.Errorf("%w in %s: %w", ErrNoSpace, blockio.Left(d.dev), err)
		}
		if d.writeErr == nil {
			d.set.opts.Logger.Warn("bucket file: a write failed; its data stays in memory, and the write is tried again", "dir", d.dev.Dir(), "error", err)
		}
		d.writeErr = err
		return
	}
	d.writeErr = nil
	d.done = b.number
	d.queue = append(d.queue[:0], d.queue[1:]...)
	d.unsynced[b.file] = true
	b.file.written.Store(b.base + int64(b.used))
	d.set.appends.Put(b.mem)
	b.mem = nil
	d.set.unpin(b.file)
}

// deleteDoomed deletes the files that nothing needs. A deletion that fails is tried again
// when the directory's goroutine next has work; until then the file counts as used space,
// and the log says so once. A file that is gone, as those of a lost directory, is deleted.
func (d *directory) deleteDoomed() {
	d.doomedMu.Lock()
	doomed := d.doomed
	d.doomed, d.deleting = nil, len(doomed)
	d.doomedMu.Unlock()
	if len(doomed) == 0 {
		return
	}
	var failed []*file
	for _, f := range doomed {
		d.mu.Lock()
		delete(d.unsynced, f)
		d.mu.Unlock()
		if f.handle != nil {
			if err := d.dev.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				if !f.undeleted {
					d.set.opts.Logger.Warn("bucket file: cannot delete a file that nothing refers to; this is tried again", "file", f.path(), "error", err)
				}
				f.undeleted = true
				failed = append(failed, f)
				continue
			}
			f.closeHandle()
		}
		d.used.Add(-f.bytes)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doomedMu.Lock()
	d.doomed, d.deleting = append(d.doomed, failed...), 0
	d.doomedMu.Unlock()
	d.tidied++
	d.cond.Broadcast()
}

// awaitDeletionsLocked waits until the deletion of every file that nothing needs by now
// has succeeded or failed, and reports whether there were such files. REQUIRES: d.mu is
// held.
func (d *directory) awaitDeletionsLocked() bool {
	d.doomedMu.Lock()
	rounds := uint64(0)
	if d.deleting > 0 {
		rounds++
	}
	if len(d.doomed) > 0 {
		rounds++
	}
	d.doomedMu.Unlock()
	for end := d.tidied + rounds; d.tidied < end && !d.closing; {
		d.wakeUp()
		d.cond.Wait()
	}
	return rounds > 0
}

// Flush makes every bucket durable whose Commit returned before the call. It flushes the
// directories in parallel and returns all their errors; after an error, no bucket may be
// assumed durable. It waits for open Appenders.
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
		if d.syncErr == nil {
			d.syncErr = err
		}
		d.cond.Broadcast()
	}
	return err
}

// drain waits until all buffers are written, and pins and returns the files that must be
// synced.
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
	target := d.done
	if n := len(d.queue); n > 0 {
		target = d.queue[n-1].number
	}
	// An earlier error does not decide the outcome of this call: the buffer is written
	// again, and only the error of that attempt counts.
	if d.writeErr != nil {
		d.retry = true
		d.wakeUp()
	}
	for d.done < target {
		switch {
		case ctx.Err() != nil:
			return nil, false, ctx.Err()
		case d.closing:
			return nil, false, ErrClosed
		case d.syncErr != nil:
			return nil, false, d.syncErr
		case d.writeErr != nil && !d.retry:
			return nil, false, d.writeErr
		}
		d.cond.Wait()
	}
	if d.closing {
		return nil, false, ErrClosed
	}
	if d.syncErr != nil {
		return nil, false, d.syncErr
	}
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	for f := range d.unsynced {
		if !f.doomed {
			f.pins++
			files = append(files, f)
		}
	}
	clear(d.unsynced)
	newNames, d.newNames = d.newNames, false
	return files, newNames, nil
}
