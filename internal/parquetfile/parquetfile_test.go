package parquetfile

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

type row struct {
	A int64  `parquet:"a"`
	B string `parquet:"b,dict"`
}

func written(t *testing.T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var data bytes.Buffer
	w := parquet.NewGenericWriter[row](&data, append(options, parquet.PageBufferSize(600))...)
	for i := range 5000 {
		if _, err := w.Write([]row{{int64(i) << 20, strings.Repeat("x", i%100)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// count reads a column and returns its number of values.
func count(data []byte, column, bufferBytes int) (n int64, err error) {
	r := bytes.NewReader(data)
	f, err := parquet.OpenFile(r, r.Size(), parquet.ReadBufferSize(bufferBytes))
	if err != nil {
		return 0, err
	}
	pages, err := Pages(f, r, 0, column)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		n += p.NumValues()
		parquet.Release(p)
	}
}

// TestSoundFiles pass, wherever reads cut the headers.
func TestSoundFiles(t *testing.T) {
	for _, data := range [][]byte{written(t), written(t, parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1))} {
		for _, bufferBytes := range []int{16, 17, 61, 100, 1000, 1 << 20} {
			for column := range 2 {
				if n, err := count(data, column, bufferBytes); n != 5000 || err != nil {
					t.Fatalf("column %d, reads of %d bytes: %d values, %v", column, bufferBytes, n, err)
				}
			}
		}
	}
}

// TestForgedHeaders: nothing is allocated by a header's word.
func TestForgedHeaders(t *testing.T) {
	data := written(t, parquet.Compression(&parquet.Zstd))
	for want, change := range map[string]func(h *format.PageHeader){
		"decompressed":      func(h *format.PageHeader) { h.UncompressedPageSize = math.MaxInt32 },
		"left":              func(h *format.PageHeader) { h.CompressedPageSize = math.MaxInt32 },
		"-1 bytes":          func(h *format.PageHeader) { h.CompressedPageSize = -1 },
		"2147483647 values": func(h *format.PageHeader) { h.DataPageHeaderV2.NumValues = math.MaxInt32 },
		"type DATA_PAGE":    func(h *format.PageHeader) { h.Type = format.DataPage },
	} {
		bad := forged(t, data, change)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := count(bad, 0, 4096)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, parquet.ErrCorrupted) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d bytes were taken", want, n)
		}
	}
}

// TestForgedFooter: a page is neither longer than the file nor, if it is small, very large when it is
// decompressed, whatever the footer says about its column.
func TestForgedFooter(t *testing.T) {
	data := written(t, parquet.Compression(&parquet.Zstd))
	for want, change := range map[string]func(h *format.PageHeader){
		"left":         func(h *format.PageHeader) { h.CompressedPageSize = math.MaxInt32 },
		"decompressed": func(h *format.PageHeader) { h.UncompressedPageSize = math.MaxInt32 },
	} {
		bad := forged(t, data, change)
		f, err := parquet.OpenFile(bytes.NewReader(bad), int64(len(bad)))
		if err != nil {
			t.Fatal(err)
		}
		column := &f.Metadata().RowGroups[0].Columns[0].MetaData
		column.TotalCompressedSize, column.TotalUncompressedSize = 1<<40, 1<<40
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		pages, err := Pages(f, bytes.NewReader(bad), 0, 0)
		if err == nil {
			_, err = pages.ReadPage()
		}
		runtime.ReadMemStats(&after)
		if !errors.Is(err, parquet.ErrCorrupted) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d bytes were taken", want, n)
		}
	}
}

// TestPagesOfMoreValues: the pages of a column do not have more values than the footer says, which would
// shift the values behind them into other rows.
func TestPagesOfMoreValues(t *testing.T) {
	data := written(t)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	f.Metadata().RowGroups[0].Columns[0].MetaData.NumValues--
	pages, err := Pages(f, bytes.NewReader(data), 0, 0)
	for err == nil {
		var page parquet.Page
		if page, err = pages.ReadPage(); err == nil {
			parquet.Release(page)
		}
	}
	if !errors.Is(err, parquet.ErrCorrupted) {
		t.Error(err)
	}
}

// forged changes the header of the first page of a column, over whatever follows it.
func forged(t *testing.T, data []byte, change func(h *format.PageHeader)) []byte {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	at := f.Metadata().RowGroups[0].Columns[0].MetaData.DataPageOffset
	h, _, err := decodeHeader(data[at:])
	if err != nil {
		t.Fatal(err)
	}
	change(h)
	text, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.Clone(data)
	copy(out[at:], text)
	return out
}

// TestUnsupportedIsRefused: what the library cannot decode is refused when a file is opened,
// and not lost as if it was damaged.
func TestUnsupportedIsRefused(t *testing.T) {
	data := written(t)
	for want, change := range map[string]func(c *format.ColumnMetaData){
		"LZO":                   func(c *format.ColumnMetaData) { c.Codec = format.LZO },
		"for BYTE_ARRAY: write": func(c *format.ColumnMetaData) { c.Encoding = append(c.Encoding, format.ByteStreamSplit) },
	} {
		f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		change(&f.Metadata().RowGroups[0].Columns[1].MetaData)
		if err := CheckCodecs(f, []int{1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
		if err := CheckCodecs(f, []int{0}); err != nil {
			t.Error(err)
		}
	}
}
