package spool

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/slots"
)

// Store says where the spools of a table are.
type Store struct {
	Devices  []blockio.Device // one for each directory
	Table    uint64
	RowBytes int
	Hash     slots.Hasher // of keys
	// Charge is called with the bytes that spools take, or no longer take, in a directory.
	Charge func(dir int, bytes int64)
	// Written is called with the number of bytes written, by several goroutines.
	Written func(bytes int64)
}

// Place says which rows a spool is for, and bounds its number of groups.
type Place struct {
	ID uint64
	// The number of a row's partition consists of the bits of its hash from Shift on. All rows of
	// the spool have the same bits from Free to Shift; their value is Common.
	Free, Shift uint
	Common      uint64
	Groups      int
}

// Spool is one spool. It must be used by one goroutine at a time.
type Spool struct {
	store *Store
	place Place
	entry int
	shape Shape

	fill   []buffer // by partition
	parts  []partition
	groups []group
	bytes  int64

	spare   chan []byte
	writers []chan write // by directory
	running sync.WaitGroup
	failed  atomic.Pointer[error]
}

const (
	// Groups is the number of groups of a large spool: the space of a group is freed only when its
	// last partition is done. A spool that divides a part of another has fewer, because there may
	// be many such spools and making files takes time.
	Groups     = 64
	groupBytes = 16 << 20
	// With two writers, a directory stays busy while one of them completes a block.
	writersEach = 2
)

type buffer struct {
	mem  []byte
	used int
}

type partition struct {
	blocks []uint32 // numbers of its blocks, in order
	last   int      // rows in the last block; all others are full
}

type group struct {
	files  []blockio.File // by directory; nil: not made
	bytes  []int64        // by directory
	blocks uint32
	parts  int // partitions that are not yet done
}

// write is a block on its way to a device.
type write struct {
	device blockio.Device
	file   blockio.File
	offset int64
	mem    []byte
	used   int
	part   uint32
	number uint32
}

// New makes a spool whose buffers lie in arena, until Finish or Close. It returns false if arena is
// too small.
func (st *Store) New(arena []byte, minBlock int, p Place) (*Spool, bool) {
	entry := EntryBytes(st.RowBytes)
	shape, ok := ShapeOf(int64(len(arena)), entry, len(st.Devices), minBlock)
	if !ok {
		return nil, false
	}
	n := 1 << shape.Bits
	s := &Spool{
		store: st, place: p, entry: entry, shape: shape,
		fill: make([]buffer, n), parts: make([]partition, n), groups: make([]group, 1<<(bits.Len(uint(min(p.Groups, n)))-1)),
		spare: make(chan []byte, shape.spare),
	}
	for i := range s.groups {
		s.groups[i] = group{files: make([]blockio.File, len(st.Devices)), bytes: make([]int64, len(st.Devices)), parts: n / len(s.groups)}
	}
	block := func(i int) []byte {
		from := i * shape.BlockBytes
		return arena[from : from+shape.BlockBytes : from+shape.BlockBytes]
	}
	for i := range n {
		s.fill[i] = buffer{block(i), headerBytes}
	}
	for i := range shape.spare {
		s.spare <- block(n + i)
	}
	for range st.Devices {
		writes := make(chan write, shape.spare)
		s.writers = append(s.writers, writes)
		for range writersEach {
			s.running.Go(func() { s.write(writes) })
		}
	}
	return s, true
}

// Bytes is the number of bytes written, without the rows in the buffers.
func (s *Spool) Bytes() int64 { return s.bytes }

// BlockBytes is the size of a block.
func (s *Spool) BlockBytes() int { return s.shape.BlockBytes }

func (s *Spool) mask() uint64 { return 1<<s.shape.Bits - 1 }

// perBlock is the number of rows in a full block.
func (s *Spool) perBlock() int { return (s.shape.BlockBytes - headerBytes) / s.entry }

// Add appends a row. Its error may concern an earlier row.
func (s *Spool) Add(ctx context.Context, key, hash uint64, row []float32) error {
	p := uint32(hash >> s.place.Shift & s.mask())
	b := &s.fill[p]
	if b.used+s.entry > len(b.mem) {
		if err := s.send(ctx, p); err != nil {
			return err
		}
	}
	PutEntry(b.mem[b.used:b.used+s.entry], key, row)
	b.used += s.entry
	return nil
}

// send passes the buffer of a partition to a writer and replaces it.
func (s *Spool) send(ctx context.Context, p uint32) error {
	if err := s.err(ctx); err != nil {
		return err
	}
	b := &s.fill[p]
	g := s.groupOf(p)
	dir := int(g.blocks) % len(g.files)
	file, err := s.file(g, int(s.group(p)), dir)
	if err != nil {
		return err
	}
	part := &s.parts[p]
	part.last = (b.used - headerBytes) / s.entry
	part.blocks = append(part.blocks, g.blocks)
	w := write{s.store.Devices[dir], file, s.offset(g.blocks), b.mem, b.used, p, g.blocks}
	g.blocks++
	bytes := int64(padUp(b.used))
	g.bytes[dir] += bytes
	s.bytes += bytes
	s.store.Charge(dir, bytes)
	s.writers[dir] <- w // has room for all buffers
	*b = buffer{used: headerBytes}
	select {
	case b.mem = <-s.spare:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// group is the number of a partition's group. The partitions of a group have consecutive numbers.
func (s *Spool) group(p uint32) uint32   { return p / uint32(len(s.parts)/len(s.groups)) }
func (s *Spool) groupOf(p uint32) *group { return &s.groups[s.group(p)] }

// offset is the offset of a block in its file.
func (s *Spool) offset(number uint32) int64 {
	return int64(number) / int64(len(s.store.Devices)) * int64(s.shape.BlockBytes)
}

// file returns the file of a group in a directory, and makes it when it is first needed.
func (s *Spool) file(g *group, number, dir int) (blockio.File, error) {
	if g.files[dir] == nil {
		d := s.store.Devices[dir]
		f, err := d.Create(s.name(number))
		if err != nil {
			return nil, deviceError("create", err, d)
		}
		g.files[dir] = f
	}
	return g.files[dir], nil
}

// deviceError adds the remaining space if the file system is full.
func deviceError(what string, err error, d blockio.Device) error {
	if blockio.IsFull(err) {
		return fmt.Errorf("%s a spool in %s: %w", what, blockio.Left(d), err)
	}
	return fmt.Errorf("%s a spool: %w", what, err)
}

func (s *Spool) name(group int) string {
	return fmt.Sprintf("%s%016x-%02x%s", s.store.prefix(), s.place.ID, group, Suffix)
}

func (st *Store) prefix() string { return fmt.Sprintf("%016x-", st.Table) }

// err returns the error that keeps the spool from taking more rows, if there is one.
func (s *Spool) err(ctx context.Context) error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// write writes blocks until the channel is closed.
func (s *Spool) write(writes <-chan write) {
	defer panics.Exit("writing a spool")
	for w := range writes {
		if s.failed.Load() == nil {
			n := s.seal(w)
			if _, err := w.file.WriteAt(w.mem[:n], w.offset); err != nil {
				err = deviceError("write", err, w.device)
				s.failed.CompareAndSwap(nil, &err)
			} else {
				s.store.Written(int64(n))
			}
		}
		select {
		case s.spare <- w.mem:
		default: // the spool is being closed
		}
	}
}

// Finish writes the rows in the buffers and waits for the writers. Afterwards, even after an error,
// the buffers are no longer in use.
func (s *Spool) Finish(ctx context.Context) error {
	var err error
	for p := range s.fill {
		if s.fill[p].used > headerBytes && err == nil {
			err = s.send(ctx, uint32(p))
		}
	}
	s.stop()
	if err == nil {
		err = s.err(ctx)
	}
	return err
}

// stop ends the writers.
func (s *Spool) stop() {
	for _, w := range s.writers {
		close(w)
	}
	s.writers = nil
	s.running.Wait()
	s.fill = nil
}

// Done says that the rows of a unit are no longer needed. When all partitions of a group are done,
// the group's files are deleted.
func (s *Spool) Done(u *Unit) error {
	var errs []error
	for _, p := range u.parts {
		g := s.groupOf(p)
		if g.parts--; g.parts == 0 {
			errs = append(errs, s.drop(int(s.group(p))))
		}
	}
	return errors.Join(errs...)
}

// drop deletes the files of a group.
func (s *Spool) drop(group int) error {
	g := &s.groups[group]
	var errs []error
	for dir, f := range g.files {
		if f == nil {
			continue
		}
		g.files[dir] = nil
		errs = append(errs, f.Close())
		if err := s.store.Devices[dir].Remove(s.name(group)); err != nil {
			errs = append(errs, fmt.Errorf("remove a spool: %w", err))
		}
		s.store.Charge(dir, -g.bytes[dir])
	}
	return errors.Join(errs...)
}

// Close closes the spool and deletes what is left of it.
func (s *Spool) Close() error {
	s.stop()
	var errs []error
	for group := range s.groups {
		errs = append(errs, s.drop(group))
	}
	return errors.Join(errs...)
}

// Remove deletes the spools of unfinished imports.
func (st *Store) Remove() error {
	for _, d := range st.Devices {
		names, err := d.List()
		if err != nil {
			return fmt.Errorf("list %s: %w", d.Dir(), err)
		}
		for _, n := range names {
			if strings.HasPrefix(n, st.prefix()) && strings.HasSuffix(n, Suffix) {
				if err := d.Remove(n); err != nil {
					return fmt.Errorf("remove the spool of an unfinished import, %s: %w", filepath.Join(d.Dir(), n), err)
				}
			}
		}
	}
	return nil
}
