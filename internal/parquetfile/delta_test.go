package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"

	"aibox/internal/testseed"
)

// TestForgedDeltas: a header of differences that announces far more of them than its page has
// values costs no memory, and no column that may have one is left to the library.
func TestForgedDeltas(t *testing.T) {
	type row struct {
		Short int32  `parquet:"short,delta"`
		Long  int64  `parquet:"long,delta"`
		Text  string `parquet:"text,delta"`
	}
	const n = 200
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	if _, err := w.Write(make([]row, n)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for i, column := range f.Root().Columns() {
		meta := &f.Metadata().RowGroups[0].Columns[i].MetaData
		if libraryReads(meta, column) {
			t.Errorf("the library reads column %s", column.Name())
		}
		// The second header is that of what follows prefixes.
		decode := func(first, second uint64) error {
			text := binary.AppendUvarint([]byte{0x80, 1, 4}, first) // blocks of 128 in 4 parts
			text = append(text, make([]byte, 1+2*(1+4))...)         // the first value and the differences of 2 blocks are 0
			text = append(binary.AppendUvarint(append(text, 0x80, 1, 4), second), make([]byte, 1+2*(1+4))...)
			size := int32(len(text))
			h := &format.PageHeader{UncompressedPageSize: size, CompressedPageSize: size,
				DataPageHeader: &format.DataPageHeader{NumValues: n, Encoding: meta.Encoding[len(meta.Encoding)-1]}}
			_, err := (&storedPages{column: column}).decode(dataPage{header: h, text: text}, nil)
			return err
		}
		if err := decode(n, n); err != nil {
			t.Errorf("column %s: %v", column.Name(), err)
		}
		forged := [][2]uint64{{1 << 28, 1 << 28}}
		if column.Name() == "text" {
			forged = append(forged, [2]uint64{n, 1 << 28})
		}
		for _, values := range forged {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := decode(values[0], values[1])
			runtime.ReadMemStats(&after)
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 || !errors.Is(err, parquet.ErrCorrupted) {
				t.Errorf("column %s, %d values: %d bytes are taken: %v", column.Name(), values, taken, err)
			}
		}
	}
}

// TestForgedPrefixes: texts that repeat the text before them do not take far more room than their page,
// while a page of the usual size may repeat as much as it likes.
func TestForgedPrefixes(t *testing.T) {
	column := func() *parquet.Column {
		type row struct {
			Text string `parquet:"text,delta"`
		}
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b)
		if _, err := w.Write(make([]row, 1)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		return f.Root().Columns()[0]
	}()
	decode := func(n, length int) (taken uint64, err error) {
		prefixes, suffixes := make([]int32, n), make([]int32, n)
		for i := range prefixes[1:] {
			prefixes[1+i] = int32(length)
		}
		suffixes[0] = int32(length)
		var e delta.BinaryPackedEncoding
		first, _ := e.EncodeInt32(nil, prefixes)
		second, _ := e.EncodeInt32(nil, suffixes)
		text := slices.Concat(first, second, make([]byte, length))
		size := int32(len(text))
		h := &format.PageHeader{UncompressedPageSize: size, CompressedPageSize: size,
			DataPageHeader: &format.DataPageHeader{NumValues: int32(n), Encoding: format.DeltaByteArray}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = (&storedPages{column: column}).decode(dataPage{header: h, text: text}, nil)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	if _, err := decode(4000, 1<<10); err != nil {
		t.Error(err)
	}
	if taken, err := decode(4000, 1<<16); taken > 1<<20 || !errors.Is(err, parquet.ErrCorrupted) {
		t.Errorf("%d bytes are taken: %v", taken, err)
	}
}

// TestSecondHeader: the second header of texts with common prefixes is found behind the differences of
// the first, whatever their widths.
func TestSecondHeader(t *testing.T) {
	rng := testseed.Rand(t)
	e := &delta.ByteArrayEncoding{}
	for range 200 {
		n := rng.IntN(700)
		offsets, text := []uint32{0}, []byte{}
		for range n {
			text = append(text, bytes.Repeat([]byte{byte(rng.IntN(2))}, rng.IntN(1<<rng.IntN(12)))...)
			offsets = append(offsets, uint32(len(text)))
		}
		page, err := e.EncodeByteArray(nil, text, offsets)
		if err != nil {
			t.Fatal(err)
		}
		d := deltas(page)
		d.skip(d.uvarint(), d.uvarint(), d.uvarint())
		d.uvarint()
		d.uvarint()
		if second := d.uvarint(); second != uint64(n) {
			t.Fatalf("%d values, the second header says %d", n, second)
		}
	}
}
