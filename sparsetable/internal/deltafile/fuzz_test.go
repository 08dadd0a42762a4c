package deltafile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// FuzzDecode adds the checksum to each block. A block that is accepted must have all its rows
// within the block.
func FuzzDecode(f *testing.F) {
	const rowBytes = 36
	block := func(rows uint32, kind Kind, bytes int) []byte {
		b := make([]byte, bytes)
		copy(b, magic)
		le := binary.LittleEndian
		le.PutUint64(b[8:], 7)
		le.PutUint64(b[16:], 8)
		le.PutUint32(b[24:], 1)
		le.PutUint32(b[28:], rows)
		le.PutUint32(b[32:], uint32(kind))
		return b
	}
	f.Add(block(3, Dirty, 512))
	f.Add(block(0, Clean, 512))
	f.Add(block(1<<32-1, Dirty, 1024))
	f.Add(block(9, Dirty, HeaderBytes))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bytes.Clone(data)
		if len(b) >= HeaderBytes {
			binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
		}
		for kind := range Kind(3) {
			n, reason := decode(b, Header{Table: 7, File: 8, Block: 1, Kind: kind}, rowBytes)
			if reason != "" {
				continue
			}
			r := Reader{store: &Store{RowBytes: rowBytes}, block: b}
			for i := range n {
				if _, _, row := r.Entry(i); len(row) != rowBytes/4 {
					t.Fatalf("row of %d words", len(row))
				}
			}
		}
	})
}
