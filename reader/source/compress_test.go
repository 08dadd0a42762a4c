package source

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// logText is n lines that compress like a log.
func logText(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d\t%d\t%x\t%x\n", i&1, i, rng.Uint32()%1000, rng.Uint64())
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zlibbed(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func framedSnappy(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := snappy.NewBufferedWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hadoopSnappy writes blocks of two chunks each.
func hadoopSnappy(data []byte) []byte {
	const block, chunk = 10_000, 5_000
	var out []byte
	for len(data) > 0 {
		b := data[:min(block, len(data))]
		data = data[len(b):]
		out = binary.BigEndian.AppendUint32(out, uint32(len(b)))
		for len(b) > 0 {
			c := b[:min(chunk, len(b))]
			b = b[len(c):]
			enc := s2.EncodeSnappy(nil, c)
			out = binary.BigEndian.AppendUint32(out, uint32(len(enc)))
			out = append(out, enc...)
		}
	}
	return out
}

// bzip2 -9 of bzip2Text, twice in a row; Go has no bzip2 writer.
const (
	bzip2Text   = "clicks and impressions\n"
	bzip2Base64 = `QlpoOTFBWSZTWSZqf1gAAALRgAAQQAAuL9gAIAAxTAABEDT1NNN6oM+VqSXUMorFHTh8XckU4UJAman9YEJaaDkxQVkmU1kman9YAAAC0YAAEEAALi/YACAAMUwAARA09TTTeqDPlakl1DKKxR04fF3JFOFCQJmp/WA=`
)

func decompressAll(c Compression, data []byte) ([]byte, error) {
	d, err := Decompress(c, iotest.HalfReader(bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(d)
	return out, errors.Join(err, d.Close())
}

type codecCase struct {
	name string
	c    Compression
	enc  []byte // of text
	text []byte
}

func codecCases(t testing.TB) []codecCase {
	text := logText(5000)
	half := len(text) / 2
	return []codecCase{
		{"none", NoCompression, text, text},
		{"gzip", Gzip, gzipped(t, text), text},
		{"gzip members", Gzip, append(gzipped(t, text[:half]), gzipped(t, text[half:])...), text},
		{"deflate", Deflate, zlibbed(t, text), text},
		{"deflate streams", Deflate, append(zlibbed(t, text[:half]), zlibbed(t, text[half:])...), text},
		{"zstd", Zstd, zstded(t, text), text},
		{"zstd frames", Zstd, append(zstded(t, text[:half]), zstded(t, text[half:])...), text},
		{"snappy framing", Snappy, framedSnappy(t, text), text},
		{"snappy framing twice", Snappy, append(framedSnappy(t, text[:half]), framedSnappy(t, text[half:])...), text},
		{"snappy hadoop", Snappy, hadoopSnappy(text), text},
	}
}

func TestDecompress(t *testing.T) {
	for _, tc := range codecCases(t) {
		got, err := decompressAll(tc.c, tc.enc)
		if err != nil || !bytes.Equal(got, tc.text) {
			t.Errorf("%s: %d bytes, want %d; error %v", tc.name, len(got), len(tc.text), err)
		}
	}
}

// A stream that was cut anywhere never ends with a plain EOF, except between
// two chunks of the formats that have no end mark.
func TestDecompressTruncated(t *testing.T) {
	for _, tc := range codecCases(t) {
		if tc.c == NoCompression {
			continue
		}
		rng := rand.New(rand.NewPCG(7, 7))
		cuts := []int{len(tc.enc) - 1, len(tc.enc) - 4, len(tc.enc) - 8}
		for i := range 40 {
			cuts = append(cuts, i, rng.IntN(len(tc.enc)))
		}
		for _, n := range cuts {
			if strings.HasPrefix(tc.name, "snappy framing") && n == len(snappyMagic) {
				continue // the mark at the beginning alone is a whole, empty stream
			}
			got, err := decompressAll(tc.c, tc.enc[:n])
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s cut at %d of %d: error %v, want one that wraps io.ErrUnexpectedEOF", tc.name, n, len(tc.enc), err)
			}
			if !bytes.HasPrefix(tc.text, got) {
				t.Errorf("%s cut at %d: decompressed bytes differ", tc.name, n)
			}
		}
	}
}

func TestDecompressPlainText(t *testing.T) {
	for _, c := range []Compression{Gzip, Zstd, Bzip2, Deflate} {
		_, err := Decompress(c, strings.NewReader("label,user\n1,7\n"))
		if !errors.Is(err, ErrBadStream) || !strings.HasPrefix(err.Error(), "this is not "+c.String()) || !strings.Contains(err.Error(), "rename the file") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestDecompressAfterSkippedFrame reads a file of pzstd, which begins with a frame that
// decompressors must skip.
func TestDecompressAfterSkippedFrame(t *testing.T) {
	got, err := decompressAll(Zstd, append([]byte("\x53\x2a\x4d\x18\x02\x00\x00\x00ab"), zstded(t, []byte("1,7\n"))...))
	if err != nil || string(got) != "1,7\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDecompressBzip2(t *testing.T) {
	enc, err := base64.StdEncoding.DecodeString(bzip2Base64)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decompressAll(Bzip2, enc)
	if want := strings.Repeat(bzip2Text, 2); err != nil || string(got) != want {
		t.Fatalf("got %q, error %v; want %q", got, err, want)
	}
	for n := range enc {
		if n == len(enc)/2 {
			continue // whole first stream
		}
		if _, err := decompressAll(Bzip2, enc[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: error %v", n, err)
		}
	}
}

// A gzip file that is cut anywhere ends early, also within the optional fields of a
// member's header, such as the name that gzip(1) stores.
func TestDecompressGzipHeaderCut(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "part-0.csv", "a comment", []byte("extra field")
	if _, err := w.Write([]byte("0\t1\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	member := b.Bytes()
	for _, before := range [][]byte{nil, member} {
		enc := slices.Concat(before, member)
		for n := len(before) + 1; n < len(enc); n++ {
			if _, err := decompressAll(Gzip, enc[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("cut at %d of %d: error %v, want one that wraps io.ErrUnexpectedEOF", n, len(enc), err)
			}
		}
	}
}

// Zeros behind a gzip file are no fault, anything else is.
func TestDecompressGzipPadding(t *testing.T) {
	text := logText(100)
	padded := append(gzipped(t, text), make([]byte, 700_000)...)
	if got, err := decompressAll(Gzip, padded); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes, want %d; error %v", len(got), len(text), err)
	}
	half := len(text) / 2
	members := slices.Concat(gzipped(t, text[:half]), make([]byte, 512), gzipped(t, text[half:]))
	if got, err := decompressAll(Gzip, members); err != nil || !bytes.Equal(got, text) {
		t.Errorf("members behind padding: %d bytes, want %d; error %v", len(got), len(text), err)
	}
	for name, tail := range map[string]string{"one byte": "x", "text": "0123456789abcdef"} {
		got, err := decompressAll(Gzip, append(bytes.Clone(padded), tail...))
		if !errors.Is(err, ErrBadStream) && !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Equal(got, text) {
			t.Errorf("%s behind the padding: %d bytes, want %d; error %v", name, len(got), len(text), err)
		}
	}
	if _, err := decompressAll(Gzip, make([]byte, 100)); !errors.Is(err, ErrBadStream) {
		t.Errorf("only zeros: error %v", err)
	}
}

// A window above the limit is no corruption.
func TestDecompressZstdWindow(t *testing.T) {
	for name, c := range map[string]struct {
		descriptor byte // of the window: 1 << (10 + descriptor>>3)
		want       error
	}{"128 MiB": {17 << 3, nil}, "256 MiB": {18 << 3, ErrUnsupported}, "2 GiB": {21 << 3, ErrUnsupported}} {
		// Magic number, descriptor without checksum and size, window, and a last
		// block of one byte as it is.
		frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, c.descriptor, 1<<3 | 1, 0, 0, 'a'}
		got, err := decompressAll(Zstd, frame)
		if !errors.Is(err, c.want) || errors.Is(err, ErrBadStream) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
		if c.want == nil && string(got) != "a" {
			t.Errorf("%s: %q", name, got)
		}
		if c.want != nil && !strings.Contains(err.Error(), "MiB large, but at most 128 are allowed: compress the file without --long") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Damaged data is ErrBadStream or an early end, never wrong bytes without an
// error: all these formats carry checksums, except Hadoop's snappy.
func TestDecompressDamaged(t *testing.T) {
	for _, tc := range codecCases(t) {
		if tc.c == NoCompression || tc.name == "snappy hadoop" {
			continue
		}
		rng := rand.New(rand.NewPCG(3, 3))
		for range 60 {
			enc := bytes.Clone(tc.enc)
			i := rng.IntN(len(enc))
			enc[i] ^= 1 << rng.IntN(8)
			got, err := decompressAll(tc.c, enc)
			if err == nil && !bytes.Equal(got, tc.text) {
				t.Errorf("%s: bit flip at byte %d of %d gave wrong bytes without an error", tc.name, i, len(enc))
			}
			if err != nil && !errors.Is(err, ErrBadStream) && !errors.Is(err, io.ErrUnexpectedEOF) &&
				!errors.Is(err, ErrUnsupported) { // the window of a damaged zstd header
				t.Errorf("%s: bit flip at byte %d: untyped error %v", tc.name, i, err)
			}
		}
	}
}

// A fault of the reader below is reported as itself, not as bad data.
func TestDecompressSourceFault(t *testing.T) {
	fault := errors.New("network gone")
	for _, tc := range codecCases(t) {
		r := io.MultiReader(bytes.NewReader(tc.enc[:len(tc.enc)/2]), iotest.ErrReader(fault))
		d, err := Decompress(tc.c, r)
		if err == nil {
			_, err = io.ReadAll(d)
		}
		if !errors.Is(err, fault) || errors.Is(err, ErrBadStream) {
			t.Errorf("%s: error %v, want %v", tc.name, err, fault)
		}
	}
}

func TestCompressionNames(t *testing.T) {
	for name, want := range map[string]Compression{
		"a.gz": Gzip, "a.GZ": Gzip, "a.csv.gzip": Gzip, "a.zst": Zstd, "a.zstd": Zstd,
		"x/y.snappy": Snappy, "y.sz": Snappy, "b.bz2": Bzip2, "000000_0.deflate": Deflate, "gz": NoCompression, "a.gz/b": NoCompression,
	} {
		if got := CompressionOf(name); got != want {
			t.Errorf("CompressionOf(%q) = %v, want %v", name, got, want)
		}
	}
	for c := NoCompression; c <= Deflate; c++ {
		if got, err := ParseCompression(c.String()); got != c || err != nil {
			t.Errorf("ParseCompression(%q) = %v, %v", c.String(), got, err)
		}
	}
	if _, err := ParseCompression("lz4"); err == nil {
		t.Error("ParseCompression(lz4) succeeded")
	}
}

func FuzzDecompressSnappy(f *testing.F) {
	text := logText(20)
	f.Add(framedSnappy(f, text))
	f.Add(hadoopSnappy(text))
	f.Add([]byte{0, 0, 0, 5, 0, 0, 0, 1, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Decompress(Snappy, bytes.NewReader(data))
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, io.LimitReader(d, 16<<20)); err != nil &&
			!errors.Is(err, ErrBadStream) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("untyped error %v", err)
		}
	})
}
