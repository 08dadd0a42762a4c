package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Unit is a set of rows that is merged with the table at once: those with certain bits in the hash.
// It is a partition of a spool, or several of them if the table has fewer slots than the spool has
// partitions.
//
//	slot number   | any | bits of common | any |
//	                    ^ top            ^ free
type Unit struct {
	free, top uint
	common    uint64 // shifted down by free
	parts     []uint32
	blocks    []block // the blocks of each partition are in order
}

// block is one block of a partition.
type block struct {
	part, number uint32
	rows         int
}

// Units divides the spool so that each unit is a set of whole slots of a table with at least
// 2^level slots.
func (s *Spool) Units(level uint) []Unit {
	free, shift := min(s.place.Free, level), s.place.Shift
	width := min(s.shape.Bits, max(level, shift)-shift)
	units := make([]Unit, 1<<width)
	for i := range units {
		units[i] = Unit{free: free, top: shift + width, common: s.place.Common | uint64(i)<<(shift-s.place.Free)}
		if level < shift {
			units[i].top = free // the only unit
		}
	}
	for p := range s.parts {
		u := &units[p&(1<<width-1)]
		u.parts = append(u.parts, uint32(p))
		part := &s.parts[p]
		for i, number := range part.blocks {
			rows := s.perBlock()
			if i == len(part.blocks)-1 {
				rows = part.last
			}
			u.blocks = append(u.blocks, block{uint32(p), number, rows})
		}
	}
	return units
}

// Divisible reports whether a unit of a table with 2^level slots has several slots, so that it can
// be spooled again in smaller partitions.
func (s *Spool) Divisible(level uint) bool { return level > s.place.Shift+s.shape.Bits }

// Part returns the place for a spool with that ID that divides a unit of s.
func (s *Spool) Part(id uint64, u *Unit) Place {
	bytes := int64(len(u.blocks)) * int64(s.shape.BlockBytes)
	return Place{ID: id, Free: s.place.Free, Shift: u.top, Common: u.common, Groups: int(min(bytes/groupBytes+1, Groups))}
}

// local numbers the slots of a unit consecutively.
func (u *Unit) local(slot uint32) uint32 {
	return slot>>u.top<<u.free | slot&(1<<u.free-1)
}

// slot is the inverse of local.
func (u *Unit) slot(local uint32) uint32 {
	return local>>u.free<<u.top | uint32(u.common)<<u.free | local&(1<<u.free-1)
}

// locals is the number of local slots in a table of n slots.
func (u *Unit) locals(n uint32) int { return int((n-1)>>u.top+1) << u.free }

func (s *Spool) path(b block) string {
	dir := int(b.number) % len(s.store.Devices)
	return filepath.Join(s.store.Devices[dir].Dir(), s.name(int(s.group(b.part))))
}

func (s *Spool) verify(b block, buf []byte) error {
	if reason := s.check(buf, b.part, b.number, b.rows); reason != "" {
		return &CorruptionError{File: s.path(b), Offset: s.offset(b.number), Reason: reason}
	}
	return nil
}

func (s *Spool) readError(b block, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &CorruptionError{File: s.path(b), Offset: s.offset(b.number), Reason: "the file ends within a block"}
	}
	return fmt.Errorf("read a spool: %w", err)
}

// Copy adds the rows of a unit to another spool. buf has the size of a block.
func (s *Spool) Copy(ctx context.Context, u *Unit, to *Spool, buf []byte) error {
	for _, b := range u.blocks {
		dir := int(b.number) % len(s.store.Devices)
		buf := buf[:s.padded(b.rows)]
		if _, err := s.groupOf(b.part).files[dir].ReadAt(buf, s.offset(b.number)); err != nil {
			return s.readError(b, err)
		}
		if err := s.verify(b, buf); err != nil {
			return err
		}
		err := EachEntry(buf[headerBytes:headerBytes+b.rows*s.entry], s.entry, func(key uint64, row []float32) error {
			return to.Add(ctx, key, s.store.Hash.Of(key), row)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
