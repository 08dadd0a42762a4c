package reader

import (
	"errors"
	"io"
	"os"
	"testing"

	"aibox/internal/testseed"
	"aibox/reader/source"
)

// TestParquetCutWhileRead checks that a file that is truncated while it is read does not look like
// a file that ends there.
func TestParquetCutWhileRead(t *testing.T) {
	type row struct {
		Y int64 `parquet:"y"`
		U int64 `parquet:"u"`
	}
	rng := testseed.Rand(t)
	rows := make([]row, 400_000)
	for i := range rows {
		rows[i] = row{int64(i % 2), rng.Int64()}
	}
	path := writeParquet(t, t.TempDir(), "a.parquet", rows)
	o := testOptions(Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "u", Role: RoleSparse}}}, path)
	o.ChunkBytes, o.BatchSize, o.BatchesPerPass = 4<<10, 100, 1
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for {
		p, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			t.Fatalf("the input ended after %d of %d rows: %v", read, len(rows), err)
		}
		if err != nil {
			if !errors.Is(err, source.ErrChanged) {
				t.Errorf("the error is %v, want one that says that the file has changed", err)
			}
			break
		}
		if read == 0 {
			if err := os.Truncate(path, 1<<20); err != nil {
				t.Fatal(err)
			}
		}
		for i := range p.Batches {
			read += p.Batches[i].N
		}
	}
	if err := r.Close(); err != nil && !errors.Is(err, source.ErrChanged) {
		t.Error(err)
	}
}
