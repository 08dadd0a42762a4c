package parquetcolumn

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"aibox/internal/process"
)

// TestWriteManyColumns: of very many columns few rows wait, and few are in a row group, and to find out which
// columns repeat their values takes no time that grows with the square of their number.
func TestWriteManyColumns(t *testing.T) {
	const columns, rows = 8000, 300
	wide, cells := make([]Written, columns), make([][]byte, columns)
	for i := range wide {
		wide[i] = Written{Name: fmt.Sprint("c", i)}
	}
	var file bytes.Buffer
	w := NewWriter(&file, wide)
	before := process.ProcessorTimeOrZero()
	for row := range rows {
		for i := range cells {
			cells[i] = strconv.AppendInt(nil, int64(row*i%7), 10)
		}
		if err := w.Encode(cells); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		if len(w.first)*columns > firstCells {
			t.Fatalf("%d rows of %d cells wait", len(w.first), columns)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if took := process.ProcessorTimeOrZero() - before; took > 20*time.Second {
		t.Errorf("it took %v", took)
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
