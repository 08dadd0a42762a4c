package blocktest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"aibox/sparsetable/internal/blockio"
)

// Options of New. The zero value is a device of unit 512 without limits.
type Options struct {
	Dir       string // default "mem"
	UnitBytes int    // default 512
	// CapacityBytes bounds the sum of all files' sizes; writes beyond it store what fits and return
	// ENOSPC. 0: no limit.
	CapacityBytes int64
	// Seed is the seed of everything random.
	Seed uint64
}

// Device is a directory in memory. It implements blockio.Device.
type Device struct {
	dir  string
	unit int

	mu struct {
		sync.Mutex
		inject   func(Op) Fault
		capacity int64
		names    map[string]*inode
		durable  map[string]*inode // names that survive a crash
		journal  []func(map[string]*inode)
		rng      *rand.Rand
		open     int // Files not closed
		closed   bool
		crashed  bool
		queue    []*blockio.Read
		reading  bool // a goroutine works on queue
		stats    blockio.Stats
	}
	idle sync.Cond // on mu: reading became false
}

// inode is a file's contents; it may have several names, or none.
type inode struct {
	data    []byte         // what a process sees
	durable []byte         // what survives a crash
	dirty   map[int64]bool // units written since the last Sync
}

var errCrashed = errors.New("blocktest: the machine has crashed")

// New returns an empty device.
func New(opts Options) *Device {
	d := &Device{dir: opts.Dir, unit: opts.UnitBytes}
	if d.dir == "" {
		d.dir = "mem"
	}
	if d.unit == 0 {
		d.unit = 512
	}
	d.idle.L = &d.mu
	d.mu.capacity = opts.CapacityBytes
	d.mu.names = map[string]*inode{}
	d.mu.durable = map[string]*inode{}
	d.mu.rng = rand.New(rand.NewPCG(opts.Seed, 0x626c6f636b74))
	return d
}

// Dir, Unit, Direct, Engine and QueueDepth implement blockio.Device.
func (d *Device) Dir() string     { return d.dir }
func (d *Device) Unit() int       { return d.unit }
func (d *Device) Direct() bool    { return true }
func (d *Device) Engine() string  { return "memory" }
func (d *Device) QueueDepth() int { return 64 }

// pathError returns an error like that of the operating system's device.
func (d *Device) pathError(op, name string, err error) error {
	return &os.PathError{Op: op, Path: d.dir + "/" + name, Err: err}
}

// checkLocked counts the operation and returns its fault. A crashed or closed
// device fails everything. REQUIRES: mu is held.
func (d *Device) checkLocked(op Op) Fault {
	if d.mu.crashed {
		return Fault{Err: errCrashed}
	}
	if d.mu.inject == nil {
		return Fault{}
	}
	return d.mu.inject(op)
}

// Create implements blockio.Device.
func (d *Device) Create(name string) (blockio.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.checkLocked(Op{Kind: Create, Name: name}); f.Err != nil {
		return nil, d.pathError("open", name, f.Err)
	}
	if d.mu.names[name] != nil {
		return nil, d.pathError("open", name, os.ErrExist)
	}
	n := &inode{dirty: map[int64]bool{}}
	d.changeLocked(func(names map[string]*inode) { names[name] = n })
	d.mu.open++
	return &file{dev: d, name: name, node: n}, nil
}

// OpenFile implements blockio.Device.
func (d *Device) OpenFile(name string) (blockio.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.checkLocked(Op{Kind: Open, Name: name}); f.Err != nil {
		return nil, d.pathError("open", name, f.Err)
	}
	n := d.mu.names[name]
	if n == nil {
		return nil, d.pathError("open", name, os.ErrNotExist)
	}
	d.mu.open++
	return &file{dev: d, name: name, node: n}, nil
}

// changeLocked applies a change of names and records it for the next SyncDir or crash. REQUIRES: mu
// is held.
func (d *Device) changeLocked(change func(map[string]*inode)) {
	change(d.mu.names)
	d.mu.journal = append(d.mu.journal, change)
}

// Remove implements blockio.Device.
func (d *Device) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.checkLocked(Op{Kind: Remove, Name: name}); f.Err != nil {
		return d.pathError("remove", name, f.Err)
	}
	if d.mu.names[name] == nil {
		return d.pathError("remove", name, os.ErrNotExist)
	}
	d.changeLocked(func(names map[string]*inode) { delete(names, name) })
	return nil
}

// List implements blockio.Device.
func (d *Device) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.checkLocked(Op{Kind: List}); f.Err != nil {
		return nil, d.pathError("list", "", f.Err)
	}
	names := make([]string, 0, len(d.mu.names))
	for name := range d.mu.names {
		names = append(names, name)
	}
	return names, nil
}

// SyncDir implements blockio.Device.
func (d *Device) SyncDir() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.checkLocked(Op{Kind: SyncDir}); f.Err != nil {
		return d.pathError("sync", "", f.Err)
	}
	for _, change := range d.mu.journal {
		change(d.mu.durable)
	}
	d.mu.journal = nil
	return nil
}

// Free implements blockio.Device.
func (d *Device) Free() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.checkLocked(Op{Kind: Free}); f.Err != nil {
		return 0, d.pathError("statfs", "", f.Err)
	}
	return d.freeLocked(), nil
}

// freeLocked returns the bytes left. REQUIRES: mu is held.
func (d *Device) freeLocked() int64 {
	if d.mu.capacity == 0 {
		return 1 << 50
	}
	free := d.mu.capacity
	for _, n := range d.mu.names {
		free -= int64(len(n.data))
	}
	return max(free, 0)
}

// Submit implements blockio.Device.
func (d *Device) Submit(c *blockio.Completions, reads []*blockio.Read) {
	if len(reads) == 0 {
		return
	}
	c.Begin(reads)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.queue = append(d.mu.queue, reads...)
	if !d.mu.reading {
		d.mu.reading = true
		go d.serve()
	}
}

// serve completes the queued reads in random order and returns when there are none.
func (d *Device) serve() {
	for {
		d.mu.Lock()
		if len(d.mu.queue) == 0 {
			d.mu.reading = false
			d.idle.Broadcast()
			d.mu.Unlock()
			return
		}
		i := d.mu.rng.IntN(len(d.mu.queue))
		last := len(d.mu.queue) - 1
		r := d.mu.queue[i]
		d.mu.queue[i] = d.mu.queue[last]
		d.mu.queue = d.mu.queue[:last]
		closed := d.mu.closed
		d.mu.Unlock()
		r.Err = d.read(r, closed)
		blockio.Deliver([]*blockio.Read{r})
	}
}

// read performs one submitted read.
func (d *Device) read(r *blockio.Read, closed bool) error {
	f, ok := r.File.(*file)
	if closed || !ok || f.dev != d {
		return fmt.Errorf("%w: device %s, or a file of another one", blockio.ErrClosed, d.dir)
	}
	n, err := f.ReadAt(r.Buf, r.Offset)
	r.SetDone(n)
	if err == io.EOF {
		return fmt.Errorf("blocktest: read %d bytes at %d of %s/%s: %w", len(r.Buf), r.Offset, d.dir, f.name, io.ErrUnexpectedEOF)
	}
	return err
}

// Stats implements blockio.Device.
func (d *Device) Stats() blockio.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.stats
}

// OpenFiles returns the number of Files that were not closed.
func (d *Device) OpenFiles() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.open
}

// Close implements blockio.Device.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.mu.reading {
		d.idle.Wait()
	}
	d.mu.closed = true
	return nil
}

var _ blockio.Device = (*Device)(nil)

// errNoSpace is the error of a full file system.
const errNoSpace = unix.ENOSPC
