package deltafile

import (
	"sync/atomic"

	"aibox/sparsetable/internal/blockio"
)

// PoolBlocks is how many blocks Buffers have for each file, and how many a Reader that reads alone
// may take: one that is being filled or used, and one that is being written or read.
const PoolBlocks = 2

// Store describes the delta files of one table and where they are.
type Store struct {
	Devices  []blockio.Device // one for each of the table's directories
	Table    uint64           // its number
	RowBytes int
	Unit     int // a block takes a multiple of this many bytes

	// Blocks is a pool of BlocksNeeded blocks.
	Blocks *blockio.Pool
	// Reads is the pool from which readers that read far ahead take more blocks.
	Reads *blockio.Pool

	written atomic.Int64
}

// BlockBytes is the size of a block.
func (s *Store) BlockBytes() int { return BlockBytes(s.RowBytes) }

// EntrySize is the size of a row's entry.
func (s *Store) EntrySize() int { return EntryBytes + s.RowBytes }

// RowsPerBlock is the number of rows of a full block.
func (s *Store) RowsPerBlock() int64 { return int64((s.BlockBytes() - HeaderBytes) / s.EntrySize()) }

// FileBytes is the size of a file, or of its part for one kind of rows, with that many rows: full
// blocks, and a last one that is as short as possible.
func (s *Store) FileBytes(rows int64) int64 {
	bytes := rows / s.RowsPerBlock() * int64(s.BlockBytes())
	if rest := rows % s.RowsPerBlock(); rest > 0 {
		bytes += s.Padded(HeaderBytes + rest*int64(s.EntrySize()))
	}
	return bytes
}

// Padded is n rounded up to a length that the device can write.
func (s *Store) Padded(n int64) int64 { return roundUp(n, int64(s.Blocks.Unit())) }

// BlocksNeeded is how many blocks Store.Blocks must have for a table with that many directories:
// for a snapshot that is being written, and for one that is being read.
func BlocksNeeded(dirs int) int { return PoolBlocks*dirs + max(PoolBlocks, dirs) }

// WrittenBytes is the number of bytes written to all files.
func (s *Store) WrittenBytes() int64 { return s.written.Load() }
