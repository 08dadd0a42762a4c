package bucketfile

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

const headerBytes = 29

// fileHeader is the start of a bucket file.
type fileHeader struct {
	table    uint64
	file     uint32
	unit     int
	rowWords int
	format   uint8
}

func (h fileHeader) seal(b []byte) {
	clear(b[:fileHeaderBytes])
	le := binary.LittleEndian
	le.PutUint32(b[0:], headerMagic)
	le.PutUint64(b[8:], h.table)
	le.PutUint32(b[16:], h.file)
	le.PutUint32(b[20:], uint32(h.unit))
	le.PutUint32(b[24:], uint32(h.rowWords))
	b[28] = h.format
	le.PutUint32(b[4:], checksum(0, b[:headerBytes]))
}

// check compares the header in b with h. It returns what is wrong, or "" if they are
// equal.
func (h fileHeader) check(b []byte) (reason string) {
	le := binary.LittleEndian
	if len(b) < headerBytes || le.Uint32(b) != headerMagic {
		return "not a bucket file"
	}
	if want, got := le.Uint32(b[4:]), checksum(0, b[:headerBytes]); want != got {
		return fmt.Sprintf("header checksum %#08x, stored %#08x", got, want)
	}
	found := fileHeader{
		table: le.Uint64(b[8:]), file: le.Uint32(b[16:]),
		unit: int(le.Uint32(b[20:])), rowWords: int(le.Uint32(b[24:])), format: b[28],
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
	return fmt.Sprintf("table %016x, file %d, unit %d, rows of %d words, value format %d", h.table, h.file, h.unit, h.rowWords, h.format)
}

const fileSuffix = ".bucket"

// fileName returns the name of a bucket file.
func fileName(table uint64, file uint32) string {
	return fmt.Sprintf("%016x-%06x%s", table, file, fileSuffix)
}

// parseFileName returns the number of a bucket file of the table; ok is false
// for every other name.
func parseFileName(table uint64, name string) (file uint32, ok bool) {
	rest, found := strings.CutPrefix(strings.TrimSuffix(name, fileSuffix), fmt.Sprintf("%016x-", table))
	n, err := strconv.ParseUint(rest, 16, fileBits)
	if !found || err != nil || n == 0 || name != fileName(table, uint32(n)) {
		return 0, false
	}
	return uint32(n), true
}
