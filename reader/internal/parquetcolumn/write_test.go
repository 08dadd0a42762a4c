package parquetcolumn

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestWriteManyColumns checks that if there are very many columns, few rows are buffered and row
// groups are small.
func TestWriteManyColumns(t *testing.T) {
	const columns, rows = 8000, 150
	var file bytes.Buffer
	w := NewWriter(&file, wide(columns))
	most := 0
	for row := range rows {
		writeWide(t, w, row)
		most = max(most, len(w.first))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if most == 0 || most*columns > firstCells {
		t.Errorf("%d rows of %d cells waited", most, columns)
	}
	if n := w.rowsOf(rowGroupCells, rowGroupRows); n == 0 || n*columns > rowGroupCells {
		t.Errorf("row groups of %d rows", n)
	}
	f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if f.NumRows() != rows {
		t.Errorf("%d rows", f.NumRows())
	}
}

// BenchmarkWrite shows that the time of a cell does not grow with the number of columns: which of them
// repeat their values was once found out in quadratic time.
func BenchmarkWrite(b *testing.B) {
	for _, columns := range []int{100, 1000, 8000} {
		b.Run(fmt.Sprintf("columns=%d", columns), func(b *testing.B) {
			rows := 2 * firstCells / columns
			for b.Loop() {
				w := NewWriter(io.Discard, wide(columns))
				for row := range rows {
					writeWide(b, w, row)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*columns), "ns/cell")
		})
	}
}

// wide returns so many columns of text.
func wide(columns int) []Written {
	all := make([]Written, columns)
	for i := range all {
		all[i] = Written{Name: fmt.Sprint("c", i)}
	}
	return all
}

// writeWide writes a row of cells that repeat.
func writeWide(t testing.TB, w *Writer, row int) {
	cells := make([][]byte, len(w.columns))
	for i := range cells {
		cells[i] = strconv.AppendInt(nil, int64(row*i%7), 10)
	}
	if err := w.Encode(cells); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}
