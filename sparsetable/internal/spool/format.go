package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"aibox/sparsetable/internal/offheap"
)

const (
	magic       = "ASP1"
	headerBytes = 40
	padTo       = 4096
	// Suffix ends the names of all files of spools.
	Suffix = ".spool"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CorruptionError says that a spool file does not hold what was written.
type CorruptionError struct {
	File   string
	Offset int64
	Reason string
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("spool: %s is damaged at offset %d: %s", e.File, e.Offset, e.Reason)
}

// EntryBytes is the size of a row of rowBytes with its key.
func EntryBytes(rowBytes int) int { return 8 + rowBytes }

// PutEntry writes a row with its key to the beginning of b.
func PutEntry(b []byte, key uint64, row []float32) {
	binary.LittleEndian.PutUint64(b, key)
	copy(offheap.Float32s(b[8:]), row)
}

func entryKey(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// EachEntry calls fn for the rows in b, which have entry bytes each.
func EachEntry(b []byte, entry int, fn func(key uint64, row []float32) error) error {
	for ; len(b) >= entry; b = b[entry:] {
		if err := fn(entryKey(b), offheap.Float32s(b[8:entry:entry])); err != nil {
			return err
		}
	}
	return nil
}

// padded is the length on the device of a block with that many rows.
func (s *Spool) padded(rows int) int { return padUp(headerBytes + rows*s.entry) }

func padUp(n int) int { return (n + padTo - 1) / padTo * padTo }

// seal writes the header of a block and returns the bytes to be written.
func (s *Spool) seal(w write) int {
	b, le := w.mem, binary.LittleEndian
	rows := (w.used - headerBytes) / s.entry
	copy(b, magic)
	le.PutUint64(b[8:], s.store.Table)
	le.PutUint64(b[16:], s.place.ID)
	le.PutUint32(b[24:], w.part)
	le.PutUint32(b[28:], w.number)
	le.PutUint32(b[32:], uint32(rows))
	le.PutUint32(b[36:], 0)
	le.PutUint32(b[4:], crc32.Checksum(b[8:w.used], castagnoli))
	n := s.padded(rows)
	clear(b[w.used:n])
	return n
}

// check returns what is wrong with a block that should have that partition, number and number of
// rows, or "".
func (s *Spool) check(b []byte, part, number uint32, rows int) string {
	le := binary.LittleEndian
	used := headerBytes + rows*s.entry
	if string(b[:4]) != magic {
		return fmt.Sprintf("it does not begin with %q", magic)
	}
	if got, want := crc32.Checksum(b[8:used], castagnoli), le.Uint32(b[4:]); got != want {
		return fmt.Sprintf("checksum %08x, should be %08x", got, want)
	}
	if le.Uint64(b[8:]) != s.store.Table || le.Uint64(b[16:]) != s.place.ID || le.Uint32(b[24:]) != part || le.Uint32(b[28:]) != number || le.Uint32(b[32:]) != uint32(rows) || le.Uint32(b[36:]) != 0 {
		return "the block belongs to another table, spool or place"
	}
	return ""
}
