package spool

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// FuzzBlock adds the checksum to each block. A block that is accepted must be one that would be
// written, and its rows must lie within it.
func FuzzBlock(f *testing.F) {
	const words = 9
	s := &Spool{store: &Store{Table: 7}, place: Place{ID: 9}, entry: EntryBytes(4 * words), shape: Shape{BlockBytes: 8192}}
	sealed := func(rows int) []byte {
		w := write{mem: make([]byte, s.shape.BlockBytes), used: headerBytes, part: 3, number: 5}
		for i := range rows {
			row := make([]float32, words)
			row[1] = float32(i)
			PutEntry(w.mem[w.used:], uint64(i)<<40, row)
			w.used += s.entry
		}
		return w.mem[:s.seal(w)]
	}
	for _, rows := range []int{1, 2, s.perBlock()} {
		f.Add(sealed(rows), uint16(rows))
	}
	f.Add(sealed(20), uint16(19))
	f.Add(sealed(19), uint16(20))
	f.Add([]byte(magic), uint16(1))
	f.Add([]byte{}, uint16(4))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		rows := 1 + int(n-1)%s.perBlock()
		b := make([]byte, s.padded(rows))
		copy(b, data)
		used := headerBytes + rows*s.entry
		binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:used], castagnoli))
		if s.check(b, 3, 5, rows) != "" {
			return
		}
		w := write{mem: make([]byte, s.shape.BlockBytes), used: used, part: 3, number: 5}
		read := 0
		if err := EachEntry(b[headerBytes:used], s.entry, func(key uint64, row []float32) error {
			read++
			if len(row) != words {
				t.Fatalf("a row of %d words", len(row))
			}
			PutEntry(w.mem[headerBytes+(read-1)*s.entry:], key, row)
			return nil
		}); err != nil || read != rows {
			t.Fatalf("%d rows of %d, %v", read, rows, err)
		}
		s.seal(w)
		if !bytes.Equal(b[:used], w.mem[:used]) {
			t.Fatalf("accepted %x, would be %x", b[:headerBytes], w.mem[:headerBytes])
		}
		for _, at := range []int{0, 5, 8, 16, 24, 28, 32, 36, headerBytes, used - 1} { // the checksum is right no more
			b[at] ^= 4
			if s.check(b, 3, 5, rows) == "" {
				t.Fatalf("a block with another byte %d was accepted", at)
			}
			b[at] ^= 4
		}
		if s.check(b, 2, 5, rows) == "" || s.check(b, 3, 4, rows) == "" {
			t.Fatal("the block was also accepted as that of another partition")
		}
	})
}
