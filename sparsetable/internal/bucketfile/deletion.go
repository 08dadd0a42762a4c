package bucketfile

import (
	"errors"
	"io/fs"
	"sync"
)

// deletionQueue has the files of a directory that nothing needs any more. The directory's goroutine
// deletes them, in rounds. The lock comes last in the order of locks, since files are added under
// Set.mu.
type deletionQueue struct {
	sync.Mutex
	waiting  []*file
	deleting int    // files of the current round
	rounds   uint64 // completed rounds
}

// add hands a file over for deletion.
func (d *deletionQueue) add(f *file) {
	d.Lock()
	defer d.Unlock()
	d.waiting = append(d.waiting, f)
}

// begin begins a round with the waiting files.
func (d *deletionQueue) begin() []*file {
	d.Lock()
	defer d.Unlock()
	files := d.waiting
	d.waiting, d.deleting = nil, len(files)
	return files
}

// end ends a round. Files whose deletion failed wait for the next one.
func (d *deletionQueue) end(failed []*file) {
	d.Lock()
	defer d.Unlock()
	d.waiting, d.deleting = append(d.waiting, failed...), 0
	d.rounds++
}

// progress returns how many rounds have been completed (done), and how many will have been completed
// once the deletion of all files that are there now has succeeded or failed.
func (d *deletionQueue) progress() (done, due uint64) {
	d.Lock()
	defer d.Unlock()
	done, due = d.rounds, d.rounds
	if d.deleting > 0 {
		due++
	}
	if len(d.waiting) > 0 {
		due++
	}
	return done, due
}

// closeAll closes the waiting files without deleting them.
func (d *deletionQueue) closeAll() {
	d.Lock()
	defer d.Unlock()
	for _, f := range d.waiting {
		f.closeHandle()
	}
}

// deleteQueued deletes the files that nothing needs. A deletion that fails is tried again when the
// directory's goroutine next has work; until then the file counts as used space, and the log says
// so once. A file that no longer exists, as in a lost directory, counts as deleted.
func (d *directory) deleteQueued() {
	files := d.deletions.begin()
	if len(files) == 0 {
		return
	}
	var failed []*file
	for _, f := range files {
		if d.delete(f) {
			d.room.used.Add(-f.bytes)
		} else {
			failed = append(failed, f)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deletions.end(failed)
	d.cond.Broadcast()
}

// delete deletes a file and reports whether it is gone.
func (d *directory) delete(f *file) bool {
	d.mu.Lock()
	delete(d.writes.unsynced, f)
	d.mu.Unlock()
	if f.handle == nil { // it was never created
		return true
	}
	if err := d.dev.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if !f.undeleted {
			d.set.opts.Logger.Warn("bucket file: cannot delete a file that nothing refers to; this is tried again", "file", f.path(), "error", err)
		}
		f.undeleted = true
		return false
	}
	f.closeHandle()
	return true
}

// awaitDeletionsLocked waits until the deletion of every file that nothing needs now has succeeded
// or failed, and reports whether there were such files. REQUIRES: d.mu is held.
func (d *directory) awaitDeletionsLocked() bool {
	begun, due := d.deletions.progress()
	for done := begun; done < due && !d.closing; done, _ = d.deletions.progress() {
		d.wakeUp()
		d.cond.Wait()
	}
	return due > begun
}
