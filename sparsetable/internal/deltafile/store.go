package deltafile

import (
	"path/filepath"
	"sync/atomic"

	"aibox/sparsetable/internal/blockio"
)

// PoolBlocks is how many blocks a Writer takes from the pool of blocks, and how many a
// Reader may take: one that is being filled or used, and one that is being written or read.
const PoolBlocks = 2

// Store is where the delta files of one table are.
type Store struct {
	Device   blockio.Device
	Table    uint64 // its number
	RowBytes int
	Unit     int // a block takes a whole number of these bytes

	// Blocks is the pool of blocks, PoolBlocks for a Writer and as many for a Reader.
	Blocks *blockio.Pool
	// Reads is the pool of which readers that read far ahead take further blocks.
	Reads *blockio.Pool

	written atomic.Int64
}

// BlockBytes is the size of a block.
func (s *Store) BlockBytes() int { return BlockBytes(s.RowBytes) }

// EntrySize is the size of a row's entry.
func (s *Store) EntrySize() int { return EntryBytes + s.RowBytes }

// RowsPerBlock is how many rows a full block has.
func (s *Store) RowsPerBlock() int64 { return int64((s.BlockBytes() - HeaderBytes) / s.EntrySize()) }

// FileBytes is how many bytes a file, or the part of it that one kind of rows has, takes
// with that many rows: full blocks, and a last one that is as short as possible.
func (s *Store) FileBytes(rows int64) int64 {
	bytes := rows / s.RowsPerBlock() * int64(s.BlockBytes())
	if rest := rows % s.RowsPerBlock(); rest > 0 {
		bytes += s.Padded(HeaderBytes + rest*int64(s.EntrySize()))
	}
	return bytes
}

// Padded is n rounded up to what the device can write.
func (s *Store) Padded(n int64) int64 { return roundUp(n, int64(s.Blocks.Unit())) }

// Path is the path of a file.
func (s *Store) Path(name string) string { return filepath.Join(s.Device.Dir(), name) }

// WrittenBytes is how many bytes were written to all files.
func (s *Store) WrittenBytes() int64 { return s.written.Load() }
