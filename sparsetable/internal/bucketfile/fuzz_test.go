package bucketfile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"aibox/sparsetable/internal/blockio"
)

// fuzzFile is a file with units of 512 bytes. The scanner can use it without a device.
func fuzzFile(rowWords int) *file {
	s := &Set{unit: 512, opts: Options{Table: 7, RowWords: rowWords, BufferBytes: 64 << 10}}
	return &file{set: s, dir: &directory{dev: &fuzzDevice{}}, id: 3, name: "fuzz"}
}

// fuzzDevice is a device with a name, which errors need.
type fuzzDevice struct{ blockio.Device }

func (*fuzzDevice) Dir() string { return "fuzz" }

// resealed returns data in which the checksums of everything that looks like a bucket or a filler
// at the beginning of a unit are right. Otherwise the checksums would reject nearly all inputs of
// the fuzzer.
func resealed(f *file, data []byte) []byte {
	le := binary.LittleEndian
	b := make([]byte, (len(data)+511)/512*512)
	copy(b, data)
	for at := 0; at < len(b); at += 512 {
		rec := b[at:]
		seed := f.seed(int64(fileHeaderBytes+at) / 512)
		switch le.Uint32(rec) {
		case bucketMagic:
			if n := uint64(le.Uint32(rec[16:])) + bucketHeaderBytes; n <= uint64(len(rec)) {
				le.PutUint32(rec[4:], checksum(seed, rec[:n]))
			}
		case fillerMagic:
			le.PutUint32(rec[4:], checksum(seed, rec[:fillerBytes]))
		}
	}
	return b
}

// FuzzScan checks that a scan ends whatever a file contains, in chunks of any size, and yields only
// buckets that lie within the file.
func FuzzScan(f *testing.F) {
	bucket := encode(1, 0, 3, []uint64{1, 2}, value, 7)
	bucket = append(bucket, make([]byte, -len(bucket)&511)...)
	filler := make([]byte, 1024)
	sealFiller(filler, 0, 512)
	f.Add(bucket, uint16(2), uint8(2))
	f.Add(append(bytes.Clone(filler), bucket...), uint16(2), uint8(1))
	f.Add(append(bytes.Clone(bucket), filler...), uint16(2), uint8(100))
	f.Add(append(bytes.Clone(filler[:512]), bucket...), uint16(2), uint8(1))
	f.Add(make([]byte, 2000), uint16(0), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, words uint16, chunkUnits uint8) {
		file := fuzzFile(int(words) + 1)
		b := resealed(file, data)
		end := int64(fileHeaderBytes + len(b))
		sc := scanner{set: file.set, file: file, fn: func(loc Location, b *Bucket) error {
			if from, to := loc.Offset()*512, (loc.Offset()+int64(loc.Units()))*512; from < fileHeaderBytes || to > end || b.Len() < 0 {
				t.Fatalf("bucket of %d rows at %d to %d of %d", b.Len(), from, to, end)
			}
			for i := range b.Len() {
				_ = b.Key(i)
				if len(b.Row(i)) != int(words)+1 {
					t.Fatal("row of wrong length")
				}
			}
			return nil
		}}
		for at := int64(fileHeaderBytes); at < end; {
			chunk := b[at-fileHeaderBytes:]
			// Rows are words in place, so a chunk must be aligned as buffers are.
			chunk = chunk[:min(len(chunk), (1+int(chunkUnits))*512)]
			next, err := sc.chunk(chunk, at, at+int64(len(chunk)) >= end)
			if err != nil {
				t.Fatal(err)
			}
			if next <= at {
				t.Fatalf("from %d to %d", at, next)
			}
			at = next
		}
		if len(sc.errs) > maxScanErrors {
			t.Fatalf("%d errors", len(sc.errs))
		}
	})
}

// FuzzHeader checks that a header is accepted only if it is the one that would be written.
func FuzzHeader(f *testing.F) {
	h := fileHeader{table: 7, file: 3, unit: 512, rowWords: 20, incarnation: 5}
	b := make([]byte, fileHeaderBytes)
	h.seal(b)
	f.Add(b[:headerBytes])
	f.Add(b[:4])
	f.Fuzz(func(t *testing.T, data []byte) {
		b := make([]byte, fileHeaderBytes)
		copy(b, data)
		binary.LittleEndian.PutUint32(b[4:], checksum(0, b[:headerBytes]))
		if h.check(b) != "" {
			return
		}
		want := make([]byte, fileHeaderBytes)
		h.seal(want)
		if !bytes.Equal(b[:headerBytes], want[:headerBytes]) {
			t.Fatalf("accepted %x", b[:headerBytes])
		}
	})
}

// FuzzFileName checks that a name counts as that of a file of the table only if it is the name that
// the file would have.
func FuzzFileName(f *testing.F) {
	f.Add(uint64(7), fileName(7, 1, 0))
	f.Add(uint64(7), fileName(7, 1, 9))
	f.Add(uint64(7), fileName(8, 1, 9))
	f.Add(uint64(1<<63), fileName(1<<63, 1<<fileBits-1, 1<<64-1))
	f.Add(uint64(7), fileName(7, 0, 9))
	f.Add(uint64(7), "0000000000000007-+00001.bucket")
	f.Add(uint64(7), "")
	f.Fuzz(func(t *testing.T, table uint64, name string) {
		if file, incarnation, ok := parseFileName(table, name); ok && (file == 0 || fileName(table, file, incarnation) != name) {
			t.Fatalf("%q is file %d", name, file)
		}
	})
}
