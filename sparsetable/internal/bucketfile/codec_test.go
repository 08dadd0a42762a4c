package bucketfile

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// encode makes a bucket in memory whose rows can be viewed.
func encode(slot uint32, seed uint32, rowWords int, keys []uint64, value func(row, word int) float32, seq uint64) []byte {
	n := bucketBytes(len(keys), rowWords)
	words := make([]uint64, unitsOf(n, 512)*64)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	set := &Set{opts: Options{RowWords: rowWords}, unit: 512}
	a := Appender{dir: &directory{set: set}, buf: &appendBuffer{mem: b}, maxRows: len(keys)}
	row := make([]float32, rowWords)
	for i, k := range keys {
		for w := range row {
			row[w] = value(i, w)
		}
		a.Put(k, row)
	}
	sealBucket(b, seed, slot, len(keys), rowWords, 1, seq)
	return b
}

func value(row, word int) float32 { return float32(row)*1000 + float32(word) + 0.5 }

func TestCodecRoundTrip(t *testing.T) {
	for _, words := range []int{1, 3, 4, 20, 33} {
		for _, rows := range []int{0, 1, 2, 7, 100} {
			keys := make([]uint64, rows)
			for i := range keys {
				keys[i] = math.MaxUint64 - uint64(i*i)
			}
			buf := encode(7, 99, words, keys, value, 1<<40)
			b, n, reason := decodeBucket(buf, 99, words, 1)
			if reason != "" || n != bucketBytes(rows, words) || b.Slot != 7 || b.Seq != 1<<40 || b.Len() != rows {
				t.Fatalf("%d rows of %d words: %q, %d bytes, %+v", rows, words, reason, n, b)
			}
			for i, k := range keys {
				if b.Key(i) != k {
					t.Fatalf("key %d is %d, want %d", i, b.Key(i), k)
				}
				for w, v := range b.Row(i) {
					if v != value(i, w) {
						t.Fatalf("row %d word %d is %v", i, w, v)
					}
				}
			}
		}
	}
}

// TestCodecEveryBit flips every bit of a bucket, and truncates it everywhere. No such bucket may be
// accepted.
func TestCodecEveryBit(t *testing.T) {
	buf := encode(3, 5, 3, []uint64{10, 20, 30}, value, 1)
	n := bucketBytes(3, 3)
	for bit := range 8 * n {
		buf[bit/8] ^= 1 << (bit % 8)
		if _, _, reason := decodeBucket(buf, 5, 3, 1); reason == "" {
			t.Fatalf("bit %d of byte %d flipped unnoticed", bit%8, bit/8)
		}
		buf[bit/8] ^= 1 << (bit % 8)
	}
	for cut := range n {
		if _, _, reason := decodeBucket(buf[:cut], 5, 3, 1); reason == "" {
			t.Fatalf("cut to %d bytes unnoticed", cut)
		}
	}
	if _, _, reason := decodeBucket(buf, 6, 3, 1); reason == "" {
		t.Error("a bucket from another place passes")
	}
	if _, _, reason := decodeBucket(buf, 5, 4, 1); reason == "" {
		t.Error("a bucket with shorter rows passes")
	}
}

// TestCodecFormats checks that a bucket has the table's format, or 0 like all buckets of earlier
// versions. Formats of other tables and of future versions must be refused even if the checksum is
// right.
func TestCodecFormats(t *testing.T) {
	for _, c := range []struct {
		format, rest, want byte
		ok                 bool
	}{{1, 0, 1, true}, {0, 0, 1, true}, {0, 0, 0, true}, {1, 0, 0, false}, {2, 0, 1, false}, {1, 1, 1, false}} {
		buf := encode(3, 5, 3, []uint64{10}, value, 1)
		if buf[22] != 1 {
			t.Fatalf("the bucket says format %d", buf[22])
		}
		buf[22], buf[23] = c.format, c.rest
		binary.LittleEndian.PutUint32(buf[4:], checksum(5, buf[:bucketBytes(1, 3)]))
		if _, _, reason := decodeBucket(buf, 5, 3, c.want); (reason == "") != c.ok {
			t.Errorf("format %d.%d in a table of format %d: %q", c.format, c.rest, c.want, reason)
		}
		h := fileHeader{table: 1, file: 2, unit: 512, rowWords: 3, format: c.format}
		b := make([]byte, fileHeaderBytes)
		h.seal(b)
		h.format = c.want
		if reason := h.check(b); c.rest == 0 && (reason == "") != c.ok {
			t.Errorf("a header of format %d in a table of format %d: %q", c.format, c.want, reason)
		}
	}
}

func TestFiller(t *testing.T) {
	b := make([]byte, 5*512)
	sealFiller(b, 9, 512)
	if n := decodeFiller(b[:512], 9); n != 5 {
		t.Errorf("filler of %d units, want 5", n)
	}
	for i := range fillerBytes {
		b[i] ^= 16
		if decodeFiller(b, 9) != 0 {
			t.Errorf("byte %d changed unnoticed", i)
		}
		b[i] ^= 16
	}
}

func TestFileHeader(t *testing.T) {
	for _, h := range []fileHeader{{1 << 60, 77, 512, 20, 1, 1 << 50}, {1 << 60, 77, 512, 20, 1, 0}} {
		b := make([]byte, fileHeaderBytes)
		h.seal(b)
		if reason := h.check(b); reason != "" {
			t.Error(reason)
		}
		n := headerBytes
		if h.incarnation == 0 {
			n = oldHeaderBytes
		}
		for i := range n {
			b[i] ^= 1
			if h.check(b) == "" {
				t.Errorf("byte %d changed unnoticed", i)
			}
			b[i] ^= 1
		}
		for i := range 6 {
			other := h
			switch i {
			case 0:
				other.table++
			case 1:
				other.file++
			case 2:
				other.unit = 4096
			case 3:
				other.rowWords++
			case 4:
				other.format++
			case 5:
				other.incarnation++
			}
			if other.check(b) == "" {
				t.Errorf("header of %v passes as %v", h, other)
			}
		}
	}
}

func TestFileNames(t *testing.T) {
	for _, id := range []uint32{1, 255, maxFile} {
		for _, incarnation := range []uint64{0, 1, math.MaxUint64} {
			name := fileName(42, id, incarnation)
			if got, in, ok := parseFileName(42, name); !ok || got != id || in != incarnation {
				t.Errorf("%s is file %d of incarnation %x, %v", name, got, in, ok)
			}
			if _, _, ok := parseFileName(43, name); ok {
				t.Errorf("%s is a file of another table", name)
			}
		}
	}
	for _, name := range []string{
		"", "x.bucket", "000000000000002a-1.bucket", "000000000000002a-000000.bucket", "000000000000002a-000001", "000000000000002a-00000A.bucket",
		"000000000000002a-+00001.bucket", "000000000000002a-000001-.bucket", "000000000000002a-000001-1.bucket",
		"000000000000002a-000001-0000000000000000.bucket", "000000000000002a-000001-0000000000000001-.bucket", "000000000000002a-000001-0000000000000001",
	} {
		if id, _, ok := parseFileName(42, name); ok {
			t.Errorf("%q is file %d", name, id)
		}
	}
}

// TestSeed checks that files from before there were incarnations keep their checksums, and that a
// record of one incarnation is not accepted as one of another.
func TestSeed(t *testing.T) {
	if got := seedOf(7, 0, 3, 9); got != 0xfb5f1bc8 {
		t.Errorf("seed %#x", got)
	}
	if seedOf(7, 1, 3, 9) == seedOf(7, 2, 3, 9) {
		t.Error("incarnations have the same seed")
	}
}

func TestLocation(t *testing.T) {
	for _, c := range []struct {
		file   uint32
		offset int64
		units  int
	}{{1, 0, 1}, {maxFile, maxOffset, MaxUnits}, {12345, 67890, 42}} {
		l := makeLocation(c.file, c.offset, c.units)
		if l == 0 || l.File() != c.file || l.Offset() != c.offset || l.Units() != c.units {
			t.Errorf("%v from %+v", l, c)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(1, 0, 3, []uint64{1, 2}, value, 7), uint32(0), uint8(3))
	f.Add(encode(1, 5, 1, nil, value, 7), uint32(5), uint8(1))
	f.Add([]byte("BKT1"), uint32(0), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, seed uint32, words uint8) {
		buf := make([]byte, len(data)+8)[:len(data)]
		copy(buf, data)
		b, n, reason := decodeBucket(buf, seed, int(words)+1, 1)
		if reason != "" {
			return
		}
		if n > len(buf) || n != bucketBytes(b.Len(), int(words)+1) {
			t.Fatalf("%d bytes of %d, %d rows", n, len(buf), b.Len())
		}
		for i := range b.Len() {
			_ = b.Key(i)
			if len(b.Row(i)) != int(words)+1 {
				t.Fatal("row of wrong length")
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	keys := make([]uint64, 28)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range keys {
		keys[i] = rng.Uint64()
	}
	buf := encode(1, 0, 20, keys, value, 7)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, _, reason := decodeBucket(buf, 0, 20, 1); reason != "" {
			b.Fatal(reason)
		}
	}
}
