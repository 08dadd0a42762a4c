package sparsetable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
)

// A spool keeps the rows of an import in the table's directories, in partitions.
// The rows of a partition have certain bits of their keys' hashes in common. A
// spool is deleted at the end of the import; Open deletes those that a crash left
// behind.
//
// Partitions are written in blocks, as they fill, so that writes are large. Some
// partitions form a group, which has one file in each directory. As soon as all
// partitions of a group are merged, its files are deleted and their space is free.
// The blocks of a group are spread over the directories in turn. A block has this
// form, with little-endian integers:
//
//	0   magic      "ASP1"
//	4   crc        uint32, CRC-32C of everything behind it, except padding
//	8   table      uint64
//	16  spool      uint64, random, the one in its name
//	24  partition  uint32
//	28  number     uint32, in its group
//	32  rows       uint32
//	36  0          uint32
//	40  rows times: key uint64, row
//	…   padding to 4096 bytes
type spool struct {
	t     *ssd
	id    uint64
	entry int
	shape spoolShape
	// The number of a row's partition is made of the bits of its hash from shift
	// on. All rows of the spool have the bits from free to shift in common; their
	// value is common.
	free, shift uint
	common      uint64

	fill   []spoolBuffer // by partition
	parts  []spoolPart
	groups []spoolGroup
	rows   int64
	bytes  int64

	spare   chan []byte
	writers []chan spoolWrite // by directory
	running sync.WaitGroup
	failed  atomic.Pointer[error]
}

const (
	spoolMagic       = "ASP1"
	spoolHeaderBytes = 40
	spoolSuffix      = ".spool"
	// The space of a group is freed only when its last partition is merged, so a
	// large spool has 64 groups. A spool that is made of a part of another has
	// fewer, because there may be many such spools and making files takes time.
	spoolGroups     = 64
	spoolGroupBytes = 16 << 20
	// With two writers, a directory is kept busy while one of them completes a block.
	spoolWriters = 2
)

type spoolBuffer struct {
	mem  []byte
	used int
}

type spoolPart struct {
	blocks []uint32 // numbers of its blocks, in order
	last   int      // rows in the last of them; all others are full
}

type spoolGroup struct {
	files  []blockio.File // by directory; nil: not made
	bytes  []int64        // by directory
	blocks uint32
	parts  int // partitions that are not merged yet
}

type spoolWrite struct {
	device blockio.Device
	file   blockio.File
	offset int64
	mem    []byte
	used   int
	part   uint32
	number uint32
}

// spoolPlace says which rows a spool is for, and how many groups it has at most.
type spoolPlace struct {
	id          uint64
	free, shift uint
	common      uint64
	groups      int
}

// newSpool makes a spool whose buffers lie in arena. It returns false where arena
// is too small.
func (t *ssd) newSpool(arena []byte, p spoolPlace) (*spool, bool) {
	entry := bulkEntryBytes(t.layout)
	shape, ok := t.bulk.shape(int64(len(arena)), entry, len(t.devices))
	if !ok {
		return nil, false
	}
	n := 1 << shape.bits
	s := &spool{
		t: t, id: p.id, entry: entry, shape: shape, free: p.free, shift: p.shift, common: p.common,
		fill: make([]spoolBuffer, n), parts: make([]spoolPart, n), groups: make([]spoolGroup, 1<<(bits.Len(uint(min(p.groups, n)))-1)),
		spare: make(chan []byte, shape.spare),
	}
	for i := range s.groups {
		s.groups[i] = spoolGroup{files: make([]blockio.File, len(t.devices)), bytes: make([]int64, len(t.devices)), parts: n / len(s.groups)}
	}
	block := func(i int) []byte {
		from := i * shape.blockBytes
		return arena[from : from+shape.blockBytes : from+shape.blockBytes]
	}
	for i := range n {
		s.fill[i] = spoolBuffer{block(i), spoolHeaderBytes}
	}
	for i := range shape.spare {
		s.spare <- block(n + i)
	}
	for range t.devices {
		writes := make(chan spoolWrite, shape.spare)
		s.writers = append(s.writers, writes)
		for range spoolWriters {
			s.running.Go(func() { s.write(writes) })
		}
	}
	return s, true
}

func (s *spool) mask() uint64 { return 1<<s.shape.bits - 1 }

// perBlock is how many rows a block holds.
func (s *spool) perBlock() int { return (s.shape.blockBytes - spoolHeaderBytes) / s.entry }

// add appends a row. Its error may be about an earlier row.
func (s *spool) add(ctx context.Context, key, hash uint64, row []float32) error {
	p := uint32(hash >> s.shift & s.mask())
	b := &s.fill[p]
	if b.used+s.entry > len(b.mem) {
		if err := s.send(ctx, p); err != nil {
			return err
		}
	}
	putEntry(b.mem[b.used:b.used+s.entry], key, row)
	b.used += s.entry
	s.rows++
	return nil
}

// send hands the buffer of a partition to a writer and replaces it.
func (s *spool) send(ctx context.Context, p uint32) error {
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
	part.last = (b.used - spoolHeaderBytes) / s.entry
	part.blocks = append(part.blocks, g.blocks)
	w := spoolWrite{s.t.devices[dir], file, s.offset(g.blocks), b.mem, b.used, p, g.blocks}
	g.blocks++
	bytes := roundUp(int64(b.used), 4096)
	g.bytes[dir] += bytes
	s.bytes += bytes
	s.t.files.Charge(dir, bytes)
	s.writers[dir] <- w // has room for all buffers
	*b = spoolBuffer{used: spoolHeaderBytes}
	select {
	case b.mem = <-s.spare:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// group is the number of a partition's group. A group has partitions with
// consecutive numbers.
func (s *spool) group(p uint32) uint32        { return p / uint32(len(s.parts)/len(s.groups)) }
func (s *spool) groupOf(p uint32) *spoolGroup { return &s.groups[s.group(p)] }

// offset is where a block lies in its file.
func (s *spool) offset(number uint32) int64 {
	return int64(number) / int64(len(s.t.devices)) * int64(s.shape.blockBytes)
}

// file returns the file of a group in a directory. It is made when it is first
// needed.
func (s *spool) file(g *spoolGroup, group, dir int) (blockio.File, error) {
	if g.files[dir] == nil {
		f, err := s.t.devices[dir].Create(s.name(group))
		if err != nil {
			return nil, fullDisk(fmt.Errorf("sparsetable: create a spool: %w", err), s.t.devices[dir])
		}
		g.files[dir] = f
	}
	return g.files[dir], nil
}

func (s *spool) name(group int) string {
	return fmt.Sprintf("%016x-%016x-%02x%s", s.t.tableID, s.id, group, spoolSuffix)
}

// err returns the reason why the spool takes no more rows, if there is one.
func (s *spool) err(ctx context.Context) error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// write writes blocks until the channel is closed.
func (s *spool) write(writes <-chan spoolWrite) {
	defer panics.Exit("writing a spool")
	for w := range writes {
		if s.failed.Load() == nil {
			n := s.seal(w)
			if _, err := w.file.WriteAt(w.mem[:n], w.offset); err != nil {
				err = fullDisk(fmt.Errorf("sparsetable: write a spool: %w", err), w.device)
				s.failed.CompareAndSwap(nil, &err)
			} else {
				s.t.spooled.Add(int64(n))
			}
		}
		select {
		case s.spare <- w.mem:
		default: // the spool is ending
		}
	}
}

// seal writes the header of a block and returns the bytes to be written.
func (s *spool) seal(w spoolWrite) int {
	b, le := w.mem, binary.LittleEndian
	copy(b, spoolMagic)
	le.PutUint64(b[8:], s.t.tableID)
	le.PutUint64(b[16:], s.id)
	le.PutUint32(b[24:], w.part)
	le.PutUint32(b[28:], w.number)
	le.PutUint32(b[32:], uint32((w.used-spoolHeaderBytes)/s.entry))
	le.PutUint32(b[36:], 0)
	le.PutUint32(b[4:], crc32.Checksum(b[8:w.used], castagnoli))
	n := int(roundUp(int64(w.used), 4096))
	clear(b[w.used:n])
	return n
}

// check returns what is wrong with a block that should have that partition, number
// and number of rows, or "".
func (s *spool) check(b []byte, part, number uint32, rows int) string {
	le := binary.LittleEndian
	used := spoolHeaderBytes + rows*s.entry
	if string(b[:4]) != spoolMagic {
		return fmt.Sprintf("it does not begin with %q", spoolMagic)
	}
	if got, want := crc32.Checksum(b[8:used], castagnoli), le.Uint32(b[4:]); got != want {
		return fmt.Sprintf("checksum %08x, should be %08x", got, want)
	}
	if le.Uint64(b[8:]) != s.t.tableID || le.Uint64(b[16:]) != s.id || le.Uint32(b[24:]) != part || le.Uint32(b[28:]) != number || le.Uint32(b[32:]) != uint32(rows) || le.Uint32(b[36:]) != 0 {
		return "the block belongs to another table, spool or place"
	}
	return ""
}

// finish writes the rows in the buffers and waits for the writers. Even after an
// error, the buffers are no longer in use then.
func (s *spool) finish(ctx context.Context) error {
	var err error
	for p := range s.fill {
		if s.fill[p].used > spoolHeaderBytes && err == nil {
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
func (s *spool) stop() {
	for _, w := range s.writers {
		close(w)
	}
	s.writers = nil
	s.running.Wait()
	s.fill = nil
}

// done notes that a partition is not needed any more. With the last partition of a
// group, the group's files are deleted.
func (s *spool) done(p uint32) error {
	g := s.groupOf(p)
	if g.parts--; g.parts > 0 {
		return nil
	}
	return s.drop(int(s.group(p)))
}

// drop deletes the files of a group.
func (s *spool) drop(group int) error {
	g := &s.groups[group]
	var errs []error
	for dir, f := range g.files {
		if f == nil {
			continue
		}
		g.files[dir] = nil
		errs = append(errs, f.Close())
		if err := s.t.devices[dir].Remove(s.name(group)); err != nil {
			errs = append(errs, fmt.Errorf("sparsetable: remove a spool: %w", err))
		}
		s.t.files.Charge(dir, -g.bytes[dir])
	}
	return errors.Join(errs...)
}

// close ends the spool and deletes what is left of it.
func (s *spool) close() error {
	s.stop()
	var errs []error
	for group := range s.groups {
		errs = append(errs, s.drop(group))
	}
	return errors.Join(errs...)
}

// removeSpools deletes the spools of imports that did not come to their end.
func (t *ssd) removeSpools() error {
	prefix := fmt.Sprintf("%016x-", t.tableID)
	for _, d := range t.devices {
		names, err := d.List()
		if err != nil {
			return fmt.Errorf("sparsetable: list %s: %w", d.Dir(), err)
		}
		for _, n := range names {
			if strings.HasPrefix(n, prefix) && strings.HasSuffix(n, spoolSuffix) {
				if err := d.Remove(n); err != nil {
					return fmt.Errorf("sparsetable: remove the spool of an unfinished import, %s: %w", filepath.Join(d.Dir(), n), err)
				}
			}
		}
	}
	return nil
}
