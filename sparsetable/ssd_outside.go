package sparsetable

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
	"aibox/sparsetable/internal/slots"
)

// outside is the index of the rows of a snapshot that are outside of buckets: those
// that were dirty when the snapshot was fixed. Only a table that is opened for
// reading has it. Such a table cannot write these rows to buckets, so they stay in
// the delta file, and are read from there when they are pulled. The index has a
// hash, a place and a checksum of each row, sorted by hash; it takes 16.3 to 16.6
// bytes of memory a row.
//
// The hash function is a bijection: only equal keys have equal hashes. So the index
// tells whether a key is in the files, without a read.
//
// It does not change once the table is open.
type outside struct {
	layers []checkpoint.Layer // of delta files, newest first
	files  []outsideFile      // of all layers
	fresh  int64              // rows that are in no bucket
	hash   slots.Hasher

	memory []byte
	rows   []outsideRow // ascending by hash
	starts []uint32     // starts[h>>shift] is the number of the first row whose hash begins with these bits or greater ones
	shift  uint

	perBlock   uint32 // rows of a full block
	blockBytes int64
	entryBytes int64

	// The fields that follow are used by a Pull, under changing.
	done    blockio.Completions
	arrived []*blockio.Read
	free    []*outsideRead
}

// outsideFile is a delta file.
type outsideFile struct {
	name  string
	file  blockio.File
	path  string
	dir   int    // the number of the directory that has it
	first uint32 // number of the file's first block, in all files together
}

// outsideRow is one row of the files.
type outsideRow struct {
	hash  uint64
	place outsidePlace
	sum   uint32 // CRC-32C of its entry
}

// outsidePlace is twice the number of a row, plus 1 if no bucket has it. The number is that
// of its block, times the rows of a full block, plus its number in the block. Newer files
// have smaller numbers.
type outsidePlace uint32

func (x *outside) placeOf(file int, offset int64, row int, info uint32) outsidePlace {
	number := (x.files[file].first+uint32(offset/x.blockBytes))*x.perBlock + uint32(row)
	return outsidePlace(number<<1 | ^info&1)
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

const outsideRowBytes = int64(unsafe.Sizeof(outsideRow{}))

// startBits is the binary logarithm of the number of starts for that many rows, so
// that each stands for 8 to 16 rows.
func startBits(rows int64) int { return max(0, bits.Len64(uint64(rows))-4) }

// outsideBytes is the memory that the index of that many rows takes.
func outsideBytes(rows int64) int64 {
	if rows == 0 {
		return 0
	}
	return rows*outsideRowBytes + 4*(1<<startBits(rows)+1)
}

// find returns the number of the row of a hash.
func (x *outside) find(hash uint64) (i int, ok bool) {
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

// has reports whether the row of a key is outside of buckets. For a nil index it
// returns false.
func (x *outside) has(key uint64) bool {
	return x != nil && x.hasHash(x.hash.Of(key))
}

func (x *outside) hasHash(hash uint64) bool {
	_, ok := x.find(hash)
	return ok
}

// count is the number of rows that are in no bucket.
func (x *outside) count() int64 {
	if x == nil {
		return 0
	}
	return x.fresh
}

// bytes is the memory that the index takes.
func (x *outside) bytes() int64 {
	if x == nil {
		return 0
	}
	return int64(len(x.memory))
}

// fileOf is the file that a row is in.
func (x *outside) fileOf(place outsidePlace) *outsideFile {
	block, at := uint32(place>>1)/x.perBlock, len(x.files)-1
	for x.files[at].first > block {
		at--
	}
	return &x.files[at]
}

// instant is that of the rows of a file.
func (x *outside) instant(file int) *catalog.Delta {
	at := 0
	for file >= len(x.layers[at]) {
		file -= len(x.layers[at])
		at++
	}
	return x.layers[at].Instant()
}

// blockOf is the offset, in its file, of the block that a row is in, offset that of its
// entry.
func (x *outside) blockOf(place outsidePlace) int64 {
	return int64(uint32(place>>1)/x.perBlock-x.fileOf(place).first) * x.blockBytes
}

func (x *outside) offset(place outsidePlace) int64 {
	return x.blockOf(place) + deltafile.HeaderBytes + int64(uint32(place>>1)%x.perBlock)*x.entryBytes
}

// close closes the files and frees the memory. REQUIRES: no read is in flight.
func (x *outside) close() error {
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
	*x = outside{}
	return errors.Join(errs...)
}
