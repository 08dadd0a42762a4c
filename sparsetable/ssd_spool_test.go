package sparsetable

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// FuzzSpoolBlock takes blocks without their checksum: what is accepted is what
// would be written, and its rows lie within the block.
func FuzzSpoolBlock(f *testing.F) {
	l := Layout{ValueDim: 3, StateDim: 2}
	s := &spool{t: &ssd{tableID: 7}, id: 9, entry: bulkEntryBytes(l), shape: spoolShape{blockBytes: 8192}}
	sealed := func(rows int) []byte {
		w := spoolWrite{mem: make([]byte, s.shape.blockBytes), used: spoolHeaderBytes, part: 3, number: 5}
		for i := range rows {
			row := make([]float32, l.Words())
			row[1] = float32(i)
			putEntry(w.mem[w.used:], uint64(i)<<40, row)
			w.used += s.entry
		}
		return w.mem[:s.seal(w)]
	}
	for _, rows := range []int{1, 2, s.perBlock()} {
		f.Add(sealed(rows), uint16(rows))
	}
	f.Add(sealed(20), uint16(19))
	f.Add(sealed(19), uint16(20))
	f.Add([]byte(spoolMagic), uint16(1))
	f.Add([]byte{}, uint16(4))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		rows := 1 + int(n-1)%s.perBlock()
		b := make([]byte, s.bytesOf(spoolBlock{rows: rows}))
		copy(b, data)
		used := spoolHeaderBytes + rows*s.entry
		binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:used], castagnoli))
		if s.check(b, 3, 5, rows) != "" {
			return
		}
		w := spoolWrite{mem: make([]byte, s.shape.blockBytes), used: used, part: 3, number: 5}
		read := 0
		if err := eachEntry(b[spoolHeaderBytes:used], s.entry, func(key uint64, row []float32) error {
			read++
			if len(row) != l.Words() {
				t.Fatalf("a row of %d words", len(row))
			}
			putEntry(w.mem[spoolHeaderBytes+(read-1)*s.entry:], key, row)
			return nil
		}); err != nil || read != rows {
			t.Fatalf("%d rows of %d, %v", read, rows, err)
		}
		s.seal(w)
		if !bytes.Equal(b[:used], w.mem[:used]) {
			t.Fatalf("accepted %x, would be %x", b[:spoolHeaderBytes], w.mem[:spoolHeaderBytes])
		}
		for _, at := range []int{0, 5, 8, 16, 24, 28, 32, 36, spoolHeaderBytes, used - 1} { // the checksum is right no more
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
