package bucketfile

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

const (
	headerBytes    = 40
	oldHeaderBytes = 29 // without the incarnation
)

// fileHeader is the start of a bucket file.
type fileHeader struct {
	table    uint64
	file     uint32
	unit     int
	rowWords int
	format   uint8
	// incarnation is 0 in files of older versions, which have the old header.
	incarnation uint64
}

func (h fileHeader) seal(b []byte) {
	clear(b[:fileHeaderBytes])
	le := binary.LittleEndian
	magic, n := uint32(headerMagic), headerBytes
	if h.incarnation == 0 {
		magic, n = oldHeaderMagic, oldHeaderBytes
	}
	le.PutUint32(b[0:], magic)
	le.PutUint64(b[8:], h.table)
	le.PutUint32(b[16:], h.file)
	le.PutUint32(b[20:], uint32(h.unit))
	le.PutUint32(b[24:], uint32(h.rowWords))
	b[28] = h.format
	le.PutUint64(b[32:], h.incarnation)
	le.PutUint32(b[4:], checksum(0, b[:n]))
}

// check compares the header in b with h. It returns what is wrong, or "" if they are equal.
func (h fileHeader) check(b []byte) (reason string) {
	le := binary.LittleEndian
	if len(b) < headerBytes {
		return "not a bucket file"
	}
	n := headerBytes
	switch le.Uint32(b) {
	case headerMagic:
	case oldHeaderMagic:
		n = oldHeaderBytes
	default:
		return "not a bucket file"
	}
	if want, got := le.Uint32(b[4:]), checksum(0, b[:n]); want != got {
		return fmt.Sprintf("header checksum %#08x, stored %#08x", got, want)
	}
	found := fileHeader{
		table: le.Uint64(b[8:]), file: le.Uint32(b[16:]),
		unit: int(le.Uint32(b[20:])), rowWords: int(le.Uint32(b[24:])), format: b[28],
	}
	if n == headerBytes {
		found.incarnation = le.Uint64(b[32:])
	}
	if found.format == formatFloat32 {
		found.format = h.format
	}
	if found != h {
		return fmt.Sprintf("header says %v, want %v", found, h)
	}
	return ""
}

func (h fileHeader) String() string {
	return fmt.Sprintf("table %016x, file %d of incarnation %016x, unit %d, rows of %d words, value format %d", h.table, h.file, h.incarnation, h.unit, h.rowWords, h.format)
}

const fileSuffix = ".bucket"

// fileName returns the name of a bucket file.
func fileName(table uint64, file uint32, incarnation uint64) string {
	name := numberName(table, file)
	if incarnation != 0 {
		name += fmt.Sprintf("-%016x", incarnation)
	}
	return name + fileSuffix
}

// numberName is the beginning of the names of all files with that number.
func numberName(table uint64, file uint32) string { return fmt.Sprintf("%016x-%06x", table, file) }

// parseFileName returns the number and the incarnation of a bucket file of the
// table; ok is false for every other name.
func parseFileName(table uint64, name string) (file uint32, incarnation uint64, ok bool) {
	rest, found := strings.CutPrefix(strings.TrimSuffix(name, fileSuffix), fmt.Sprintf("%016x-", table))
	number, random, has := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 16, fileBits)
	if !found || err != nil || n == 0 {
		return 0, 0, false
	}
	if has {
		if incarnation, err = strconv.ParseUint(random, 16, 64); err != nil {
			return 0, 0, false
		}
	}
	return uint32(n), incarnation, name == fileName(table, uint32(n), incarnation)
}
