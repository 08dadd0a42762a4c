package deltafile

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
)

// blockOf makes a valid block of rows of rowBytes.
func blockOf(rowBytes int, h Header) []byte {
	b := make([]byte, HeaderBytes, BlockBytes(rowBytes))
	for i := range uint64(h.Rows) {
		b = AppendEntry(b, 3*i, uint32(i), true, make([]float32, rowBytes/4))
	}
	b = b[:cap(b)]
	Seal(b, h)
	return b
}

func sum(b []byte) {
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
}

func TestDecode(t *testing.T) {
	const rowBytes = 32
	want := Header{Table: 7, File: 8, Block: 9, Rows: 100, Kind: Clean, Dir: 3}
	le := binary.LittleEndian
	for _, c := range []struct {
		what   string
		change func(b []byte) []byte
		reason string
	}{
		{"as it is", func(b []byte) []byte { return b }, ""},
		{"short", func(b []byte) []byte { return b[:HeaderBytes-1] }, "begin"},
		{"other magic", func(b []byte) []byte { b[3] = '1'; return b }, "begin"},
		{"flipped", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "checksum"},
		{"cut", func(b []byte) []byte { return b[:4096] }, "checksum"},
		{"other table", func(b []byte) []byte { le.PutUint64(b[8:], 1); return b }, "another table, file or place"},
		{"other file", func(b []byte) []byte { le.PutUint64(b[16:], 1); return b }, "another table, file or place"},
		{"other block", func(b []byte) []byte { le.PutUint32(b[24:], 1); return b }, "another table, file or place"},
		{"other kind", func(b []byte) []byte { le.PutUint32(b[32:], 0); return b }, "another table, file or place"},
		{"other directory", func(b []byte) []byte { le.PutUint32(b[36:], 0); return b }, "another table, file or place"},
		{"too many rows", func(b []byte) []byte { le.PutUint32(b[28:], 1<<31); return b }, "do not fit"},
	} {
		b := c.change(blockOf(rowBytes, want))
		if len(b) > 4096 && c.what != "flipped" {
			sum(b)
		}
		rows, reason := decode(b, want, rowBytes)
		if c.reason == "" && (rows != 100 || reason != "") || c.reason != "" && !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %d rows, %q, want %q", c.what, rows, reason, c.reason)
		}
	}
}

// TestNames checks that files of one instant are recognized by their names, whatever directory they
// are for.
func TestNames(t *testing.T) {
	for i, dir := range []int{0, 1, 15, 16, 70} {
		n := Name(7, 8, dir)
		instant, d := split(n)
		if d != uint32(dir) || instant+Suffix != Name(7, 8, 0) || !SameInstant(n, Name(7, 8, i)) || SameInstant(n, Name(7, 9, dir)) {
			t.Errorf("%s is split into %s, %d", n, instant, d)
		}
	}
}
