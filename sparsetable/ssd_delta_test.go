package sparsetable

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
)

// deltaBlockOf makes a valid block.
func deltaBlockOf(l Layout, table, file uint64, block, kind uint32, rows int) []byte {
	b := make([]byte, deltaBlockBytes(l))
	copy(b, deltaMagic)
	le := binary.LittleEndian
	le.PutUint64(b[8:], table)
	le.PutUint64(b[16:], file)
	le.PutUint32(b[24:], block)
	le.PutUint32(b[28:], uint32(rows))
	le.PutUint32(b[32:], kind)
	for i := range rows {
		e := b[deltaHeaderBytes+i*(deltaEntryBytes+l.Bytes()):]
		le.PutUint64(e, uint64(i)*3)
		le.PutUint32(e[8:], uint32(2*i+1))
	}
	sumDeltaBlock(b)
	return b
}

func sumDeltaBlock(b []byte) {
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
}

func TestDecodeDeltaBlock(t *testing.T) {
	l := Layout{ValueDim: 3, StateDim: 1}
	le := binary.LittleEndian
	for _, c := range []struct {
		what   string
		change func(b []byte) []byte
		reason string
	}{
		{"as it is", func(b []byte) []byte { return b }, ""},
		{"short", func(b []byte) []byte { return b[:deltaHeaderBytes-1] }, "begin"},
		{"other magic", func(b []byte) []byte { b[3] = '1'; return b }, "begin"},
		{"flipped", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "checksum"},
		{"cut", func(b []byte) []byte { return b[:4096] }, "checksum"},
		{"other table", func(b []byte) []byte { le.PutUint64(b[8:], 1); return b }, "another table, file or place"},
		{"other file", func(b []byte) []byte { le.PutUint64(b[16:], 1); return b }, "another table, file or place"},
		{"other block", func(b []byte) []byte { le.PutUint32(b[24:], 1); return b }, "another table, file or place"},
		{"other kind", func(b []byte) []byte { le.PutUint32(b[32:], 0); return b }, "another table, file or place"},
		{"too many rows", func(b []byte) []byte { le.PutUint32(b[28:], 1<<31); return b }, "do not fit"},
	} {
		b := c.change(deltaBlockOf(l, 7, 8, 9, deltaClean, 100))
		if len(b) > 4096 && c.what != "flipped" {
			sumDeltaBlock(b)
		}
		rows, reason := decodeDeltaBlock(b, 7, 8, 9, deltaClean, l)
		if c.reason == "" && (rows != 100 || reason != "") || c.reason != "" && !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %d rows, %q, want %q", c.what, rows, reason, c.reason)
		}
	}
}
