package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"aibox/internal/testseed"
)

func block(t *testing.T, text string) []byte {
	t.Helper()
	out := make([]byte, lz4.CompressBlockBound(len(text)))
	n, err := lz4.CompressBlock([]byte(text), out, nil)
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	return out[:n]
}

// TestHadoopLZ4 decompresses what parquet-mr, Arrow and those that knew nothing of Hadoop's form
// have written.
func TestHadoopLZ4(t *testing.T) {
	a, b := strings.Repeat("click ", 20), strings.Repeat("no click ", 30)
	join := func(parts ...any) (text []byte) {
		for _, part := range parts {
			switch x := part.(type) {
			case int:
				text = binary.BigEndian.AppendUint32(text, uint32(x))
			case []byte:
				text = append(binary.BigEndian.AppendUint32(text, uint32(len(x))), x...)
			}
		}
		return text
	}
	for name, text := range map[string][]byte{
		"one block":        join(len(a+b), block(t, a+b)),
		"two in a row":     join(len(a), block(t, a), len(b), block(t, b)),
		"two of one":       join(len(a+b), block(t, a), block(t, b)),
		"an empty one":     join(0, len(a+b), block(t, a), block(t, b), 0),
		"no form, a block": block(t, a+b),
	} {
		if page, err := decodeHadoopLZ4(text, len(a+b)); err != nil || string(page) != a+b {
			t.Errorf("%s: %q, %v", name, page, err)
		}
		for n := range text {
			if page, err := decodeHadoopLZ4(text[:n], len(a+b)); !errors.Is(err, parquet.ErrCorrupted) && string(page) != a+b {
				t.Fatalf("%s, cut to %d bytes: %q, %v", name, n, page, err)
			}
		}
		for _, size := range []int{0, len(a), len(a+b) - 1, len(a+b) + 1} {
			if page, err := decodeHadoopLZ4(text, size); !errors.Is(err, parquet.ErrCorrupted) {
				t.Errorf("%s, as %d bytes: %q, %v", name, size, page, err)
			}
		}
	}
}

// lists has columns that are stored in several ways. Of optional ones the library makes wrong pages
// of version 1.
type lists struct {
	Words []string  `parquet:"words,list,dict"`
	Flag  bool      `parquet:"flag"`
	Float []float32 `parquet:"float,list"`
	Short int32     `parquet:"short,delta"`
	Text  string    `parquet:"text,delta"`
}

func writtenLists(t *testing.T, version int, codec parquet.WriterOption) []byte {
	t.Helper()
	var data bytes.Buffer
	w := parquet.NewGenericWriter[lists](&data, codec, parquet.DataPageVersion(version), parquet.PageBufferSize(400), parquet.MaxRowsPerRowGroup(250))
	for i := range 700 {
		row := lists{Short: int32(i) * -5, Flag: i%3 == 0, Text: strings.Repeat("t", i%40), Float: make([]float32, i%4)}
		for j := range i % 3 {
			row.Words = append(row.Words, strings.Repeat("w", (i+j)%7))
		}
		if _, err := w.Write([]lists{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// valuesOf are the values of a file as text, with their levels. A fault and a panic of the library end them.
func valuesOf(data []byte) (all []string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = parquet.ErrCorrupted // as users of the package take it
		}
	}()
	r := bytes.NewReader(data)
	f, err := parquet.OpenFile(r, r.Size())
	if err != nil {
		return nil, err
	}
	for g, group := range f.RowGroups() {
		for i := range group.ColumnChunks() {
			var v Values
			if err := v.Begin(f, r, g, i); err != nil {
				return all, err
			}
			for {
				value, err := v.Peek()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return all, err
				}
				all = append(all, value.GoString())
				v.Skip()
			}
		}
	}
	return all, nil
}

// TestLZ4 has the values that are read without compression.
func TestLZ4(t *testing.T) {
	for version := 1; version <= 2; version++ {
		want, err := valuesOf(writtenLists(t, version, parquet.Compression(&parquet.Uncompressed)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := valuesOf(writtenLists(t, version, parquet.Compression(&parquet.Lz4Raw)))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("version %d: %d values that are not the %d ones, %v", version, len(got), len(want), err)
		}
	}
}

// TestDamagedLZ4 ends in an error or in other values, soon and without much memory.
func TestDamagedLZ4(t *testing.T) {
	rng := testseed.Rand(t)
	for version := 1; version <= 2; version++ {
		sound := writtenLists(t, version, parquet.Compression(&parquet.Lz4Raw))
		for range 300 {
			data := bytes.Clone(sound)
			for range 1 + rng.IntN(3) {
				data[4+rng.IntN(len(data)-3000)] ^= byte(1 << rng.IntN(8))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = valuesOf(data)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
				t.Fatalf("%d bytes were taken", n)
			}
		}
	}
	data := written(t, parquet.Compression(&parquet.Lz4Raw))
	for want, change := range map[string]func(h *format.PageHeader){
		"LZ4 data that do not decompress to the": func(h *format.PageHeader) { h.UncompressedPageSize-- },
		"that takes 2147483647":                  func(h *format.PageHeader) { h.UncompressedPageSize = 1<<31 - 1 },
		"has the checksum":                       func(h *format.PageHeader) { h.CRC++ },
		"which is more than the maximum":         func(h *format.PageHeader) { h.DataPageHeaderV2.NumValues++ },
		"header of a page of type":               func(h *format.PageHeader) { h.Type = format.IndexPage },
	} {
		if _, err := valuesOf(forged(t, data, change)); !errors.Is(err, parquet.ErrCorrupted) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
