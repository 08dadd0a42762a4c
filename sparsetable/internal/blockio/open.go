package blockio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"

	"aibox/internal/cores"
	"aibox/internal/process"
)

// Mode says whether files bypass the page cache.
type Mode int

// Modes of Options.Direct.
const (
	Auto Mode = iota // direct where it works, buffered with a warning elsewhere
	On               // direct, or Open fails
	Off              // buffered
)

// DefaultQueueDepth is the default number of reads that the kernel has at once. Virtual and real
// NVMe devices reach their best rate at 64 to 128 reads in flight. More reads help if all
// processors are busy: while the thread that refills the queue waits for a processor, the device
// works on the reads that it has.
const DefaultQueueDepth = 256

// Options of Open. The zero value is the default.
type Options struct {
	// QueueDepth bounds the number of reads that the kernel has at once, at most 4096; 0 stands for
	// DefaultQueueDepth.
	QueueDepth int
	// Direct chooses between O_DIRECT and the page cache.
	Direct Mode
	// Engine is "io_uring", "pread", or "" for the first that works.
	Engine string
	// UnitBytes is the smallest unit to use, 512 to 4096; 0 takes the device's.
	UnitBytes int
	// ReadOnly opens files only for reading and changes nothing in the directory, which must exist.
	ReadOnly bool
	// Logger receives the warnings of the probe; nil stands for slog.Default().
	Logger *slog.Logger
}

// validate sets defaults and returns the first fault.
func (o *Options) validate() error {
	if o.QueueDepth == 0 {
		o.QueueDepth = DefaultQueueDepth
	}
	if o.QueueDepth < 1 || o.QueueDepth > 4096 {
		return fmt.Errorf("blockio: queue depth %d, want 1 to 4096", o.QueueDepth)
	}
	if u := o.UnitBytes; u != 0 && (u < minUnit || u > maxUnit || u&(u-1) != 0) {
		return fmt.Errorf("blockio: unit of %d bytes, want a power of two from %d to %d", u, minUnit, maxUnit)
	}
	if o.Engine != "" && o.Engine != engineURing && o.Engine != enginePread {
		return fmt.Errorf("blockio: unknown engine %q, want %q, %q or none", o.Engine, engineURing, enginePread)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// Open returns a Device for dir, which it creates if it is missing. It writes and removes a small
// file there to find out what the file system supports; with Options.ReadOnly it reads an existing
// file instead.
func Open(ctx context.Context, dir string, opts Options) (Device, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("blockio: open %s: %w", dir, err)
	}
	look := probe
	if opts.ReadOnly {
		look = probeReading
	} else if err := MakeDir(dir); err != nil {
		return nil, fmt.Errorf("blockio: make directory: %w", err)
	}
	found, err := look(dir, opts)
	if err != nil {
		return nil, err
	}
	d := &osDevice{dir: dir, unit: found.unit, direct: found.direct, readOnly: opts.ReadOnly, depth: opts.QueueDepth}
	if d.engine, err = openEngine(d, opts); err != nil {
		return nil, err
	}
	d.asleep = cores.Sleepers()
	return d, nil
}

// Names of engines.
const (
	engineURing = "io_uring"
	enginePread = "pread"
)

// An engine performs the reads that are submitted to it and delivers them. Each read
// keeps its file open until it is delivered, see osFile.
type engine interface {
	name() string
	// submit takes reads that passed the checks of osDevice.Submit. Once close has begun, it takes
	// nothing and returns false.
	submit(reads []*Read) bool
	// close waits for all reads and stops the engine's goroutines.
	close() error
}

// openEngine starts the engine that the options select.
func openEngine(d *osDevice, opts Options) (engine, error) {
	if opts.Engine != enginePread {
		e, err := newURingEngine(d, opts.QueueDepth)
		if err == nil {
			return e, nil
		}
		if opts.Engine == engineURing {
			return nil, fmt.Errorf("blockio: %s: %w", d.dir, err)
		}
		pread := newPreadEngine(d, opts.QueueDepth)
		opts.Logger.Warn("io_uring is not available here, so reads go through blocking calls in many threads, which is slower: "+allowRing(err), "dir", d.dir, "cause", err, "threads", pread.threads)
		return pread, nil
	}
	return newPreadEngine(d, opts.QueueDepth), nil
}

// allowRing is advice on how to let a process have a ring that it was refused for reason.
func allowRing(reason error) string {
	switch {
	case errors.Is(reason, unix.ENOMEM):
		// Kernels before 5.12 count rings as locked memory, and so do later ones if the process may
		// not lock any. Root is not limited.
		return "let the process lock more memory (ulimit -l, LimitMEMLOCK= in a systemd unit, --ulimit memlock= of a container)"
	case errors.Is(reason, unix.EMFILE):
		return "let the process open more files (" + process.RaiseFiles + ")"
	}
	return "allow io_uring_setup and io_uring_enter in the container's seccomp profile and in kernel.io_uring_disabled"
}
