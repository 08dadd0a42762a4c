package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
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
		decode := func(values uint64) error {
			text := binary.AppendUvarint([]byte{0x80, 1, 4}, values) // blocks of 128 in 4 parts
			text = append(text, make([]byte, 11)...)                 // all differences are 0
			text = append(text, text...)                             // the lengths of prefixes, and of what follows them
			size := int32(len(text))
			h := &format.PageHeader{UncompressedPageSize: size, CompressedPageSize: size,
				DataPageHeader: &format.DataPageHeader{NumValues: n, Encoding: meta.Encoding[len(meta.Encoding)-1]}}
			_, err := (&storedPages{column: column}).decode(dataPage{header: h, text: text}, nil)
			return err
		}
		if err := decode(n); err != nil {
			t.Errorf("column %s: %v", column.Name(), err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decode(1 << 28)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 || !errors.Is(err, parquet.ErrCorrupted) {
			t.Errorf("column %s: %d bytes are taken: %v", column.Name(), taken, err)
		}
	}
}
