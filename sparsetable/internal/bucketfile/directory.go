package bucketfile

import (
	"fmt"
	"sync"
	"sync/atomic"

	"aibox/sparsetable/internal/blockio"
)

// directory is the part of a Set on one device.
type directory struct {
	set     *Set
	index   int // in Set.dirs
	dev     blockio.Device
	budget  int64
	used    atomic.Int64 // bytes of all files, those being deleted included
	live    atomic.Int64 // bytes of buckets that were not released
	charged atomic.Int64 // bytes of other files, see Set.Charge
	running sync.WaitGroup
	// kick wakes the directory's goroutine. It has room for one token, so that no
	// wake-up is lost.
	kick chan struct{}

	// flushing makes flushes wait for each other: the second one must not return
	// before the first has synced. It is locked before mu.
	flushing sync.Mutex

	mu   sync.Mutex
	cond sync.Cond // on mu: a buffer was written, or failed, or closing

	// Under mu:

	file   *file         // that is appended to; nil before the first append
	end    int64         // where in file the next buffer starts
	filled *appendBuffer // takes the next bucket; nil if none does
	queue  []*appendBuffer
	opened uint64 // buffers opened so far, the number of the last one
	done   uint64 // buffers written so far
	// writeErr is the error of writing queue[0]; retry asks for another try.
	writeErr error
	retry    bool
	syncErr  error // final: it is unknown what is durable
	unsynced map[*file]bool
	newNames bool // files were created since the last SyncDir
	closing  bool
	// appended is the size of all buffers that were sealed so far.
	appended int64

	// tidied counts the completed rounds of deletion.
	tidied uint64

	// doomed has a lock of its own, which is locked last, since files are added to it
	// under Set.mu.
	doomedMu sync.Mutex
	doomed   []*file
	deleting int // files taken from doomed, in the present round
}

func newDirectory(s *Set, index int, dev blockio.Device, budget int64) *directory {
	d := &directory{set: s, index: index, dev: dev, budget: budget, kick: make(chan struct{}, 1), unsynced: map[*file]bool{}}
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
	sealed bool // in the queue; used is final
}

// wakeUp makes the directory's goroutine look for work. The caller may hold any lock.
func (d *directory) wakeUp() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// errLocked returns an error that says why nothing can be appended or flushed now, and
// asks for another try of a failed write. REQUIRES: d.mu is held.
func (d *directory) errLocked() error {
	switch {
	case d.closing:
		return ErrClosed
	case d.syncErr != nil:
		return fmt.Errorf("bucketfile: %s takes no more writes, reopen from the last snapshot: %w", d.dev.Dir(), d.syncErr)
	case d.writeErr != nil:
		d.retry = true
		d.wakeUp()
		return d.writeErr
	}
	return nil
}

// sealLocked ends the buffer being filled and queues it, unless it is empty.
// REQUIRES: d.mu is held.
func (d *directory) sealLocked() {
	b := d.filled
	if b == nil || b.used == 0 {
		return
	}
	if pad := -b.used & (writeAlign - 1); pad > 0 {
		unit := d.set.unit
		sealFiller(b.mem[b.used:b.used+pad], b.file.seed((b.base+int64(b.used))/int64(unit)), unit)
		b.used += pad
	}
	b.sealed = true
	d.end = b.base + int64(b.used)
	d.filled = nil
	d.queue = append(d.queue, b)
	d.appended += int64(b.used)
	d.grow(b.file, d.end)
	if b.open == 0 {
		d.wakeUp()
	}
}

// grow counts the bytes that a file takes.
func (d *directory) grow(f *file, bytes int64) {
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	if more := bytes - f.bytes; more > 0 {
		f.bytes = bytes
		d.used.Add(more)
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
	if d.filled != nil {
		d.queue = append(d.queue, d.filled)
	}
	for _, b := range d.queue {
		d.set.appends.Put(b.mem)
	}
	d.filled, d.queue = nil, nil
	d.doomedMu.Lock()
	defer d.doomedMu.Unlock()
	for _, f := range d.doomed {
		f.closeHandle()
	}
}
