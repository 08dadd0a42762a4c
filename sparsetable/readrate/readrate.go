package readrate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"time"

	"aibox/sparsetable/internal/blockio"
)

// fileName is the name of the file in its directory.
const fileName = "readrate.data"

// chunkBytes is the number of bytes that Create writes at once.
const chunkBytes = 4 << 20

// File is a file to read from.
type File struct {
	dir    string
	bytes  int64
	direct bool
}

// Load is the load that Measure puts on a device.
type Load struct {
	ReadBytes int           // size of a read; rounded up to the device's unit
	Depth     int           // reads in flight, 1 to 4096
	Duration  time.Duration // of the measurement
	Seed      uint64        // of the positions
}

// Create makes a file of at least that many bytes in dir, and makes dir if it is missing. The
// file's contents cannot be compressed.
func Create(ctx context.Context, dir string, bytes int64) (f *File, err error) {
	if bytes < 1 {
		return nil, fmt.Errorf("readrate: a file of %d bytes: want at least 1", bytes)
	}
	d, err := open(ctx, dir, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	f = &File{dir: dir, bytes: (bytes + chunkBytes - 1) / chunkBytes * chunkBytes, direct: d.Direct()}
	if err := f.fill(ctx, d); err != nil {
		return nil, errors.Join(fmt.Errorf("readrate: fill %s: %w", f.Path(), err), d.Remove(fileName))
	}
	return f, nil
}

// open opens dir as a device with that many reads in flight.
func open(ctx context.Context, dir string, depth int) (blockio.Device, error) {
	return blockio.Open(ctx, dir, blockio.Options{QueueDepth: depth, Logger: slog.New(slog.DiscardHandler)})
}

func (f *File) fill(ctx context.Context, d blockio.Device) (err error) {
	file, err := d.Create(fileName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	pool := blockio.NewPool(d.Unit(), 0)
	defer pool.Close()
	chunk, err := pool.Get(chunkBytes)
	if err != nil {
		return err
	}
	defer pool.Put(chunk)
	rng := rand.New(rand.NewPCG(1, 2))
	for at := int64(0); at < f.bytes; at += chunkBytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := 0; i < len(chunk); i += 8 {
			binary.LittleEndian.PutUint64(chunk[i:], rng.Uint64())
		}
		if _, err := file.WriteAt(chunk, at); err != nil {
			return err
		}
	}
	return errors.Join(file.Sync(), d.SyncDir())
}

// Path returns the path of the file.
func (f *File) Path() string { return filepath.Join(f.dir, fileName) }

// Direct reports whether reads bypass the page cache. If they do not, because the file system has
// no direct I/O, Measure measures the memory rather than the device.
func (f *File) Direct() bool { return f.direct }

// Remove deletes the file.
func (f *File) Remove() error {
	d, err := open(context.Background(), f.dir, 1)
	if err != nil {
		return err
	}
	return errors.Join(d.Remove(fileName), d.Close())
}

// Measure reads at random positions and returns the reads per second.
func (f *File) Measure(ctx context.Context, l Load) (perSecond float64, err error) {
	if l.ReadBytes < 1 || int64(l.ReadBytes) > f.bytes || l.Duration <= 0 {
		return 0, fmt.Errorf("readrate: reads of %d bytes for %v from a file of %d bytes: want reads and a duration above 0, no read larger than the file", l.ReadBytes, l.Duration, f.bytes)
	}
	d, err := open(ctx, f.dir, l.Depth)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	file, err := d.OpenFile(fileName)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size := (l.ReadBytes + d.Unit() - 1) / d.Unit() * d.Unit()
	m := &meter{device: d, size: size, places: f.bytes / int64(size), rng: rand.New(rand.NewPCG(l.Seed, 0))}
	pool := blockio.NewPool(d.Unit(), 0)
	defer pool.Close()
	// Twice the depth, so that the queue is never empty while reads are collected.
	for range 2 * l.Depth {
		buf, err := pool.Get(size)
		if err != nil {
			return 0, err
		}
		defer pool.Put(buf)
		m.idle = append(m.idle, &blockio.Read{File: file, Buf: buf[:size]})
	}
	return m.run(ctx, l.Duration)
}

// meter keeps a device busy.
type meter struct {
	device blockio.Device
	size   int
	places int64 // number of positions that can be read
	rng    *rand.Rand
	done   blockio.Completions
	idle   []*blockio.Read
}

// run measures the reads that end within d.
func (m *meter) run(ctx context.Context, d time.Duration) (perSecond float64, err error) {
	atLeast := max(1, len(m.idle)/8)
	reads := 0
	start := time.Now()
	var took time.Duration
	for took < d && err == nil {
		for _, r := range m.idle {
			r.Offset = m.rng.Int64N(m.places) * int64(m.size)
		}
		m.device.Submit(&m.done, m.idle)
		m.idle = m.done.Wait(m.idle[:0], atLeast)
		took = time.Since(start)
		reads += len(m.idle)
		err = errors.Join(ctx.Err(), failed(m.idle))
	}
	rest := m.done.Wait(nil, m.done.Pending()) // the device owns the buffers until then
	if err = errors.Join(err, failed(rest)); err != nil {
		return 0, fmt.Errorf("readrate: %w", err)
	}
	return float64(reads) / took.Seconds(), nil
}

// failed returns the first error of reads.
func failed(reads []*blockio.Read) error {
	for _, r := range reads {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}
