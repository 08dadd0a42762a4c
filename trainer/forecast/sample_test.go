package forecast

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSampleOfLongRows: of rows so long that fewer than a usual sample are read, the number of all is
// estimated, and the length of a line.
func TestSampleOfLongRows(t *testing.T) {
	const rows, cell = 4000, 500
	path := filepath.Join(t.TempDir(), "log.tsv")
	line := strings.Repeat("x", cell)
	var b strings.Builder
	b.WriteString("label\tD1\tD2\tuser\titem\n")
	for i := range rows {
		fmt.Fprintf(&b, "%d\t1\t2\t%s\t%d\n", i&1, line, i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	j := job(t, "data.train=["+path+"]", "pipeline.batches_per_pass=1")
	defer func(n int64) { sampleBytes = n }(sampleBytes)
	for _, sampleBytes = range []int64{256 << 20, rows * cell / 10} {
		d, err := SampleData(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if all := sampleBytes > rows*cell; all != (d.Sampled == rows) || !all && d.Sampled > rows/5 {
			t.Errorf("up to %d bytes: %d examples were read", sampleBytes, d.Sampled)
		}
		// The bytes are counted by chunks.
		if d.Examples < rows*8/10 || d.Examples > rows*12/10 || d.LineBytes < cell*0.8 || d.LineBytes > cell*1.2 {
			t.Errorf("up to %d bytes: %+v", sampleBytes, d)
		}
	}
}
