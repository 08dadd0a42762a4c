package blockio

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
)

// osDevice is a directory of the operating system.
type osDevice struct {
	dir      string
	unit     int
	direct   bool
	readOnly bool
	depth    int
	engine   engine
	asleep   func() // gives back the processor for goroutines that block in system calls
	closed   atomic.Bool

	stats struct {
		reads, readBytes, writes, writeBytes, syncs, engineCalls, maxInFlight atomic.Uint64
	}
}

func (d *osDevice) Dir() string     { return d.dir }
func (d *osDevice) Unit() int       { return d.unit }
func (d *osDevice) Direct() bool    { return d.direct }
func (d *osDevice) Engine() string  { return d.engine.name() }
func (d *osDevice) QueueDepth() int { return d.depth }

func (d *osDevice) path(name string) string { return filepath.Join(d.dir, name) }

func (d *osDevice) Create(name string) (File, error) {
	return d.open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
}

func (d *osDevice) OpenFile(name string) (File, error) {
	if d.readOnly {
		return d.open(name, unix.O_RDONLY)
	}
	return d.open(name, unix.O_RDWR)
}

func (d *osDevice) open(name string, flags int) (File, error) {
	if err := diskfault.At("open", d.path(name)); err != nil {
		return nil, err
	}
	if d.direct {
		flags |= unix.O_DIRECT
	}
	fd, err := openRetry(d.path(name), flags)
	if err != nil {
		return nil, withLimit(&os.PathError{Op: "open", Path: d.path(name), Err: err})
	}
	f := &osFile{dev: d, name: name, fd: fd}
	f.refs.Store(1)
	return f, nil
}

func (d *osDevice) Remove(name string) error {
	if err := diskfault.At("remove", d.path(name)); err != nil {
		return err
	}
	return os.Remove(d.path(name))
}

func (d *osDevice) List() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d *osDevice) SyncDir() error { return withLimit(disk.SyncDir(d.dir)) }

func (d *osDevice) Free() (int64, error) { return disk.Free(d.dir) }

func (d *osDevice) Submit(c *Completions, reads []*Read) {
	if len(reads) == 0 {
		return
	}
	c.Begin(reads)
	// Everything is checked and held before anything starts: from then on, reads may be delivered
	// and reused by their owner.
	for i, r := range reads {
		if r.Err = d.admit(r); r.Err != nil {
			d.submitAround(reads, i)
			return
		}
	}
	d.start(reads)
}

// admit checks one read and takes a reference to its file.
func (d *osDevice) admit(r *Read) error {
	f, ok := r.File.(*osFile)
	if !ok || f.dev != d {
		return fmt.Errorf("blockio: a read submitted to %s is of a file of another device", d.dir)
	}
	if err := CheckAligned(d.unit, r.Buf, r.Offset); err != nil {
		return fmt.Errorf("read %s: %w", d.path(f.name), err)
	}
	if err := f.fault("read"); err != nil {
		return err
	}
	return f.acquire()
}

// submitAround starts those of reads that can be started. The read at index bad has already failed,
// and some after it may fail. This path need not be fast.
func (d *osDevice) submitAround(reads []*Read, bad int) {
	good := append([]*Read(nil), reads[:bad]...)
	failed := []*Read{reads[bad]}
	for _, r := range reads[bad+1:] {
		if r.Err = d.admit(r); r.Err != nil {
			failed = append(failed, r)
		} else {
			good = append(good, r)
		}
	}
	Deliver(failed)
	d.start(good)
}

// start passes reads, each holding its file, to the engine.
func (d *osDevice) start(reads []*Read) {
	if len(reads) == 0 || d.engine.submit(reads) {
		return
	}
	for _, r := range reads {
		r.Err = fmt.Errorf("%w: device %s", ErrClosed, d.dir)
		r.File.(*osFile).release()
	}
	Deliver(reads)
}

// failed is the error of an operation on a part of a file. It names the file, for callers that
// continue without the directory.
func (d *osDevice) failed(op string, n int, offset int64, name string, err error) error {
	return &os.PathError{Op: fmt.Sprintf("blockio: %s %d bytes at %d of", op, n, offset), Path: d.path(name), Err: err}
}

// finish is called by engines for every read before it is delivered.
func (d *osDevice) finish(r *Read) {
	if r.Err != nil {
		r.Err = d.failed("read", len(r.Buf), r.Offset, r.File.Name(), r.Err)
	}
	d.stats.reads.Add(1)
	d.stats.readBytes.Add(uint64(r.done))
	r.File.(*osFile).release()
}

// inFlight is called by engines with the number of reads that the kernel has now.
func (d *osDevice) inFlight(n int) {
	for now := uint64(n); ; {
		most := d.stats.maxInFlight.Load()
		if now <= most || d.stats.maxInFlight.CompareAndSwap(most, now) {
			return
		}
	}
}

func (d *osDevice) Stats() Stats {
	return Stats{
		Reads: d.stats.reads.Load(), ReadBytes: d.stats.readBytes.Load(),
		Writes: d.stats.writes.Load(), WriteBytes: d.stats.writeBytes.Load(),
		Syncs: d.stats.syncs.Load(), EngineCalls: d.stats.engineCalls.Load(), MaxInFlight: d.stats.maxInFlight.Load(),
	}
}

func (d *osDevice) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	defer d.asleep()
	return d.engine.close()
}
