package bucketfile

import (
	"fmt"
	"sync"
	"sync/atomic"

	"aibox/sparsetable/internal/blockio"
)

// directory is the part of a Set on one device.
type directory struct {
	set       *Set
	index     int // in Set.dirs
	dev       blockio.Device
	room      room
	deletions deletionQueue
	running   sync.WaitGroup
	// wakeups wakes the directory's goroutine. It has room for one token, so that no wake-up is lost.
	wakeups chan struct{}

	// flushing serializes flushes: the second one must not return before the first has synced. It
	// is locked before mu.
	flushing sync.Mutex

	mu   sync.Mutex
	cond sync.Cond // on mu: a buffer was written, or failed, or files were deleted, or closing

	// Under mu:

	appends appends
	writes  writes
	closing bool
}

// room is the space, in bytes, that the files of a directory take and may take.
type room struct {
	budget  int64        // for all files; 0: no limit
	used    atomic.Int64 // by bucket files, those being deleted included
	live    atomic.Int64 // in buckets that were not released
	charged atomic.Int64 // by other files, see Set.Charge
}

// appends is the end of a directory's newest file, and its buffers.
type appends struct {
	file   *file         // the file being appended to; nil before the first append
	end    int64         // offset in file at which the next buffer starts
	filled *appendBuffer // takes the next bucket; nil if none does
	queue  []*appendBuffer
	opened uint64 // number of buffers opened so far, and of the last one
	sealed int64  // total size of all buffers sealed so far
}

// filledBytes is the number of used bytes in the buffer that takes the next bucket.
func (a *appends) filledBytes() int64 {
	if a.filled == nil {
		return 0
	}
	return int64(a.filled.used)
}

// queuedBytes is the size of the buffers that wait to be written.
func (a *appends) queuedBytes() (n int64) {
	for _, b := range a.queue {
		n += int64(b.used)
	}
	return n
}

// buffers is the number of buffers that have memory.
func (a *appends) buffers() int {
	if a.filled != nil {
		return len(a.queue) + 1
	}
	return len(a.queue)
}

// writes is the progress of writing a directory's buffers.
type writes struct {
	done uint64 // buffers written so far
	// failed is the error of writing the first buffer of the queue; retry requests another attempt.
	failed   error
	retry    bool
	syncErr  error // final: it is unknown what is durable
	unsynced map[*file]bool
	newNames bool // files were created since the last SyncDir
}

func newDirectory(s *Set, index int, dev blockio.Device, budget int64) *directory {
	d := &directory{set: s, index: index, dev: dev, room: room{budget: budget}, wakeups: make(chan struct{}, 1)}
	d.writes.unsynced = map[*file]bool{}
	d.cond.L = &d.mu
	return d
}

// appendBuffer is a piece of a file on its way to the device.
type appendBuffer struct {
	file   *file
	number uint64
	base   int64 // offset in file
	mem    []byte
	used   int
	open   int  // buckets begun and not finished
	sealed bool // is in the queue, and used is final
}

// wakeUp tells the directory's goroutine to look for work. The caller may hold any lock.
func (d *directory) wakeUp() {
	select {
	case d.wakeups <- struct{}{}:
	default:
	}
}

// errLocked returns an error if nothing can be appended or flushed now, and requests another
// attempt of a failed write. REQUIRES: d.mu is held.
func (d *directory) errLocked() error {
	switch {
	case d.closing:
		return ErrClosed
	case d.writes.syncErr != nil:
		return fmt.Errorf("bucketfile: %s takes no more writes, reopen from the last snapshot: %w", d.dev.Dir(), d.writes.syncErr)
	case d.writes.failed != nil:
		d.writes.retry = true
		d.wakeUp()
		return d.writes.failed
	}
	return nil
}

// sealLocked completes the buffer being filled and queues it, unless it is empty. REQUIRES: d.mu is
// held.
func (d *directory) sealLocked() {
	b := d.appends.filled
	if b == nil || b.used == 0 {
		return
	}
	if pad := -b.used & (writeAlign - 1); pad > 0 {
		unit := d.set.unit
		sealFiller(b.mem[b.used:b.used+pad], b.file.seed((b.base+int64(b.used))/int64(unit)), unit)
		b.used += pad
	}
	b.sealed = true
	a := &d.appends
	a.end = b.base + int64(b.used)
	a.filled = nil
	a.queue = append(a.queue, b)
	a.sealed += int64(b.used)
	d.grow(b.file, a.end)
	if b.open == 0 {
		d.wakeUp()
	}
}

// grow updates the size of a file and the space used.
func (d *directory) grow(f *file, bytes int64) {
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	if more := bytes - f.bytes; more > 0 {
		f.bytes = bytes
		d.room.used.Add(more)
	}
}

// stop ends the directory's goroutine and drops what it has not written.
func (d *directory) stop() {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	d.cond.Broadcast()
	d.wakeUp()
	d.running.Wait()

	d.mu.Lock()
	defer d.mu.Unlock()
	a := &d.appends
	if a.filled != nil {
		a.queue = append(a.queue, a.filled)
	}
	for _, b := range a.queue {
		d.set.appends.Put(b.mem)
	}
	a.filled, a.queue = nil, nil
	d.deletions.closeAll()
}
