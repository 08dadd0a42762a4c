package bucketfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"unsafe"
)

// A magic number identifies the kind of a record and the version of the format.
const (
	bucketMagic = 0x31544b42 // "BKT1"
	fillerMagic = 0x314c4946 // "FIL1"
	headerMagic = 0x32464b42 // "BKF2"
	// oldHeaderMagic begins the files of older versions, which have no incarnation.
	oldHeaderMagic = 0x31464b42 // "BKF1"
)

// formatFloat32 is what older versions wrote into buckets and headers for every format. It is
// accepted besides the table's own format.
const formatFloat32 = 0

const (
	bucketHeaderBytes = 32
	keyBytes          = 8
	// fileHeaderBytes is the space of a file's header: whole blocks of the file system, so that the
	// first bucket starts at a block.
	fileHeaderBytes = 4096
	// Writes end at a multiple of writeAlign, because a block of the file system in which a write
	// ends would have to be written a second time.
	writeAlign = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// bucketBytes returns the length of a bucket before padding.
func bucketBytes(rows, rowWords int) int {
	return bucketHeaderBytes + rows*(keyBytes+4*rowWords)
}

// RowsIn returns how many rows a bucket of that many bytes has room for.
func RowsIn(bytes, rowWords int) int {
	return (bytes - bucketHeaderBytes) / (keyBytes + 4*rowWords)
}

// unitsOf returns how many units n bytes take.
func unitsOf(n, unit int) int { return (n + unit - 1) / unit }

// roundUp rounds n up to a multiple of unit, a power of two.
func roundUp(n, unit int64) int64 { return (n + unit - 1) &^ (unit - 1) }

// seedOf returns the initial value of the checksum of a record at offset units in a file.
func seedOf(table, incarnation uint64, file uint32, offset int64) uint32 {
	x := table ^ incarnation ^ uint64(file)<<offsetBits ^ uint64(offset)
	x = (x ^ x>>33) * 0xff51afd7ed558ccd // the finalizer of MurmurHash3
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return uint32(x ^ x>>33)
}

// checksum covers all of b except its crc field at byte 4.
func checksum(seed uint32, b []byte) uint32 {
	seed = crc32.Update(seed, castagnoli, b[:4])
	return crc32.Update(seed, castagnoli, b[8:])
}

// sealBucket writes the header of a bucket whose entries are already in b, and clears the rest of
// b.
func sealBucket(b []byte, seed, slot uint32, rows, rowWords int, format uint8, seq uint64) {
	n := bucketBytes(rows, rowWords)
	le := binary.LittleEndian
	le.PutUint32(b[0:], bucketMagic)
	le.PutUint32(b[8:], slot)
	le.PutUint32(b[12:], uint32(rows))
	le.PutUint32(b[16:], uint32(n-bucketHeaderBytes))
	le.PutUint16(b[20:], uint16(rowWords))
	b[22], b[23] = format, 0
	le.PutUint64(b[24:], seq)
	le.PutUint32(b[4:], checksum(seed, b[:n]))
	clear(b[n:])
}

// A Bucket is a view of encoded rows. It is valid as long as the bytes from which it was decoded
// are.
type Bucket struct {
	Slot uint32
	// Seq grows with every bucket of a table: of two buckets of a slot, the newer has the larger
	// Seq.
	Seq      uint64
	rows     int
	rowWords int
	entries  []byte
}

// Len returns the number of rows.
func (b *Bucket) Len() int { return b.rows }

// Key returns the key of row i.
func (b *Bucket) Key(i int) uint64 {
	return binary.LittleEndian.Uint64(b.entries[i*(keyBytes+4*b.rowWords):])
}

// Row returns the words of row i, in place.
func (b *Bucket) Row(i int) []float32 {
	at := i*(keyBytes+4*b.rowWords) + keyBytes
	row := b.entries[at : at+4*b.rowWords]
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(row))), b.rowWords)
}

// isBigEndian says whether the processor is big-endian. Such a processor cannot use this package,
// because rows are used in place as little-endian words.
var isBigEndian = *(*byte)(unsafe.Pointer(new(uint16(1)))) == 0

// decodeBucket checks a bucket that starts at buf and returns its view and its
// length before padding. reason is empty, or says what is wrong.
func decodeBucket(buf []byte, seed uint32, rowWords int, format uint8) (b Bucket, n int, reason string) {
	le := binary.LittleEndian
	if len(buf) < bucketHeaderBytes {
		return b, 0, fmt.Sprintf("there are %d bytes, fewer than a header has", len(buf))
	}
	if m := le.Uint32(buf); m != bucketMagic {
		return b, 0, fmt.Sprintf("magic %#x, want %#x", m, uint32(bucketMagic))
	}
	rows, bytes := le.Uint32(buf[12:]), le.Uint32(buf[16:])
	if uint64(bytes) > uint64(len(buf)-bucketHeaderBytes) {
		return b, 0, fmt.Sprintf("the header says that there are %d bytes of entries, but there is room for only %d", bytes, len(buf)-bucketHeaderBytes)
	}
	n = bucketHeaderBytes + int(bytes)
	if want, got := le.Uint32(buf[4:]), checksum(seed, buf[:n]); want != got {
		return b, 0, fmt.Sprintf("checksum %#08x, stored %#08x", got, want)
	}
	// From here on the bytes are known to be those that were written.
	if w := int(le.Uint16(buf[20:])); w != rowWords {
		return b, 0, fmt.Sprintf("rows of %d words, want %d", w, rowWords)
	}
	if buf[22] != format && buf[22] != formatFloat32 || buf[23] != 0 {
		return b, 0, fmt.Sprintf("value format %d.%d, want %d: written by a newer version?", buf[22], buf[23], format)
	}
	if rows > math.MaxInt32 || bucketBytes(int(rows), rowWords) != n {
		return b, 0, fmt.Sprintf("the header says that %d rows take %d bytes, which is impossible", rows, bytes)
	}
	return Bucket{
		Slot: le.Uint32(buf[8:]), Seq: le.Uint64(buf[24:]),
		rows: int(rows), rowWords: rowWords, entries: buf[bucketHeaderBytes:n],
	}, n, ""
}

const fillerBytes = 12

// sealFiller makes b, whole units, into a filler.
func sealFiller(b []byte, seed uint32, unit int) {
	clear(b)
	binary.LittleEndian.PutUint32(b[0:], fillerMagic)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)/unit))
	binary.LittleEndian.PutUint32(b[4:], checksum(seed, b[:fillerBytes]))
}

// decodeFiller returns the length in units of the filler that starts at buf, or 0 if there is none.
// The filler may extend beyond buf.
func decodeFiller(buf []byte, seed uint32) int {
	le := binary.LittleEndian
	if len(buf) < fillerBytes || le.Uint32(buf) != fillerMagic || le.Uint32(buf[4:]) != checksum(seed, buf[:fillerBytes]) {
		return 0
	}
	return int(le.Uint32(buf[8:]))
}
