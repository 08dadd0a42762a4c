package sparsetable

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// FuzzDecodeDeltaBlock takes blocks without their checksum: whatever is
// accepted has all its rows within the block.
func FuzzDecodeDeltaBlock(f *testing.F) {
	l := Layout{ValueDim: 3, StateDim: 2}
	block := func(rows uint32, kind uint32, bytes int) []byte {
		b := make([]byte, bytes)
		copy(b, deltaMagic)
		le := binary.LittleEndian
		le.PutUint64(b[8:], 7)
		le.PutUint64(b[16:], 8)
		le.PutUint32(b[24:], 1)
		le.PutUint32(b[28:], rows)
		le.PutUint32(b[32:], kind)
		return b
	}
	f.Add(block(3, deltaDirty, 512))
	f.Add(block(0, deltaClean, 512))
	f.Add(block(1<<32-1, deltaDirty, 1024))
	f.Add(block(9, deltaDirty, deltaHeaderBytes))
	f.Add([]byte(deltaMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bytes.Clone(data)
		if len(b) >= deltaHeaderBytes {
			binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
		}
		for kind := range uint32(3) {
			n, reason := decodeDeltaBlock(b, 7, 8, 1, kind, l)
			if reason != "" {
				continue
			}
			r := deltaReader{t: &ssd{layout: l}, block: b}
			for i := range n {
				if _, _, row := r.entry(i); len(row) != l.Words() {
					t.Fatalf("row of %d words", len(row))
				}
			}
		}
	})
}
