package deltafile

import (
	"sync/atomic"

	"aibox/sparsetable/internal/blockio"
)

// PoolBlocks is how many blocks Buffers have for each file, and how many a Reader may take
// that reads alone: one that is being filled or used, and one that is being written or read.
const PoolBlocks = 2

// Store is where the delta files of one table are.
type Store struct {
	Devices  []blockio.Device // one for each of the table's directories
	Table    uint64           // its number
	RowBytes int
	Unit     int // a block takes a whole number of these bytes

	// Blocks is the pool of blocks, BlocksNeeded of them.
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

// BlocksNeeded is how many blocks Store.Blocks must have for a table of so many directories:
// for a snapshot that is written, and for one that is read.
func BlocksNeeded(dirs int) int { return PoolBlocks*dirs + max(PoolBlocks, dirs) }

// WrittenBytes is how many bytes were written to all files.
func (s *Store) WrittenBytes() int64 { return s.written.Load() }
