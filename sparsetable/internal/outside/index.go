package outside

import (
	"errors"
	"hash/crc32"
	"math/bits"
	"unsafe"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/offheap"
)

// Index is the index of the rows of a snapshot that are outside of buckets. Its methods
// accept nil, which has no rows. It does not change once it is sorted.
type Index struct {
	Options
	layers []checkpoint.Layer // of delta files, newest first
	files  []deltaFile        // of all layers
	fresh  int64              // rows that are in no bucket

	memory []byte
	rows   []row    // ascending by hash
	starts []uint32 // starts[i] is the number of the first row with hash>>shift >= i
	shift  uint

	perBlock   uint32 // rows of a full block
	blockBytes int64
	entryBytes int64

	reader reader
}

// deltaFile is a delta file.
type deltaFile struct {
	name  string
	file  blockio.File
	path  string
	dir   int    // the number of the directory that has it
	first uint32 // number of the file's first block, counted over all files
}

// row is one row of the files.
type row struct {
	hash  uint64
	place place
	sum   uint32 // CRC-32C of its entry
}

// place is twice the number of a row, plus 1 if no bucket has it. The number of a row is the number
// of its block, times the rows of a full block, plus its number in the block. Newer files have
// smaller numbers.
type place uint32

func (x *Index) placeOf(file int, offset int64, i int, info uint32) place {
	number := (x.files[file].first+uint32(offset/x.blockBytes))*x.perBlock + uint32(i)
	return place(number<<1 | ^info&1)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const rowBytes = int64(unsafe.Sizeof(row{}))

// startBits is the binary logarithm of the number of starts for that many rows, so that there are 8
// to 16 rows per start.
func startBits(rows int64) int { return max(0, bits.Len64(uint64(rows))-4) }

// bytesOf is the size of the index of that many rows.
func bytesOf(rows int64) int64 {
	if rows == 0 {
		return 0
	}
	return rows*rowBytes + 4*(1<<startBits(rows)+1)
}

// Find returns the number of the row with a hash.
func (x *Index) Find(hash uint64) (i int, ok bool) {
	if x == nil || len(x.rows) == 0 {
		return 0, false
	}
	h := hash >> x.shift // 0 where there is only one start
	from, to := x.starts[h], x.starts[h+1]
	for from < to {
		mid := (from + to) / 2
		if x.rows[mid].hash < hash {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return int(from), int(from) < len(x.rows) && x.rows[from].hash == hash
}

// Has reports whether the row of a key is outside of buckets.
func (x *Index) Has(key uint64) bool {
	return x != nil && x.HasHash(x.Hash.Of(key))
}

// HasHash is Has for the hash of a key.
func (x *Index) HasHash(hash uint64) bool {
	_, ok := x.Find(hash)
	return ok
}

// Fresh is the number of rows that are in no bucket.
func (x *Index) Fresh() int64 {
	if x == nil {
		return 0
	}
	return x.fresh
}

// Rows is the number of rows.
func (x *Index) Rows() int {
	if x == nil {
		return 0
	}
	return len(x.rows)
}

// Bytes is the memory that the index takes.
func (x *Index) Bytes() int64 {
	if x == nil {
		return 0
	}
	return int64(len(x.memory))
}

// fileOf returns the file that has a row.
func (x *Index) fileOf(place place) *deltaFile {
	block, at := uint32(place>>1)/x.perBlock, len(x.files)-1
	for x.files[at].first > block {
		at--
	}
	return &x.files[at]
}

// Instant represents the instant of the rows of a file.
func (x *Index) Instant(file int) *catalog.Delta {
	at := 0
	for file >= len(x.layers[at]) {
		file -= len(x.layers[at])
		at++
	}
	return x.layers[at].Instant()
}

// blockOf is the offset in its file of a row's block; offset is that of the row's entry.
func (x *Index) blockOf(place place) int64 {
	return int64(uint32(place>>1)/x.perBlock-x.fileOf(place).first) * x.blockBytes
}

func (x *Index) offset(place place) int64 {
	return x.blockOf(place) + deltafile.HeaderBytes + int64(uint32(place>>1)%x.perBlock)*x.entryBytes
}

// Close closes the files and frees the memory. REQUIRES: no read is in flight.
func (x *Index) Close() error {
	if x == nil {
		return nil
	}
	var errs []error
	for _, f := range x.files {
		if f.file != nil {
			errs = append(errs, f.file.Close())
		}
	}
	if x.memory != nil {
		errs = append(errs, offheap.Unmap(x.memory))
	}
	*x = Index{}
	return errors.Join(errs...)
}
