package reader

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/reader/internal/hashes"
	"aibox/reader/source"
)

// writeAdRows puts rows of adSchema into a file of the format that its name says.
func writeAdRows(t *testing.T, name string, text []byte) (string, Schema) {
	t.Helper()
	s := adSchema()
	if filepath.Ext(name) != ".parquet" {
		return write(t, t.TempDir(), name, packed(t, source.CompressionOf(name), text)), s
	}
	path := filepath.Join(t.TempDir(), name)
	plain := adSchema()
	for i := range plain.Columns {
		plain.Columns[i] = Column{Name: plain.Columns[i].Name, Role: RoleIgnore} // text: bad cells are written, too
	}
	f, err := CreateRows(t.Context(), source.New(source.Options{}), path, FormatParquet, plain)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if err := f.Write(bytes.Split(bytes.TrimSpace(line), []byte(","))); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s = adSchema()
	s.Format = FormatParquet
	return path, s
}

// TestGoodInputsAreReadToTheEnd reads inputs with bad rows anywhere, of any length,
// below the limit by all rows.
func TestGoodInputsAreReadToTheEnd(t *testing.T) {
	for _, name := range []string{"data", "data.gz", "data.zst", "data.parquet"} {
		for _, c := range []struct {
			what  string
			rows  int
			limit float64
			bad   func(i int) bool
			row   string
		}{
			{"two of the first rows", 6000, 0.001, func(i int) bool { return i == 3 || i == 1400 }, "1,x,a,b"},
			{"a burst", 19_000, 0.005, func(i int) bool { return i >= 900 && i < 990 }, "1,x,a,b"},
			{"a burst of long rows", 19_000, 0.005, func(i int) bool { return i >= 900 && i < 990 }, "1,x,a," + strings.Repeat("b", 2000)},
			{"a bad beginning", 19_000, 0.005, func(i int) bool { return i < 90 }, "1,x,a,b"},
			{"as many as allowed", 10_000, 0.01, func(i int) bool { return i%100 == 0 }, "1,x,a,b"},
		} {
			var text bytes.Buffer
			for i := range c.rows {
				if c.bad(i) {
					text.WriteString(c.row + "\n")
				} else {
					fmt.Fprintf(&text, "%d,1,%x,b\n", i%2, hashes.Random(1, 1, 1, uint64(i)))
				}
			}
			path, schema := writeAdRows(t, name, text.Bytes())
			o := testOptions(schema, path)
			o.MaxBadFraction, o.ChunkBytes, o.BatchSize = c.limit, 4096, 1024
			if _, _, err := readAll(o); err != nil {
				t.Errorf("%s: %s: %v", name, c.what, err)
			}
		}
	}
}

// TestWrongFormatEndsEarly reads an input of which every row is bad.
func TestWrongFormatEndsEarly(t *testing.T) {
	text := bytes.Repeat([]byte("1,x,a,b\n"), 100_000)
	for _, name := range []string{"data", "data.gz", "data.snappy", "data.parquet"} {
		path, schema := writeAdRows(t, name, text)
		o := testOptions(schema, path)
		o.MaxBadFraction, o.ChunkBytes = 0.01, 4096
		_, _, err := readAll(o)
		var bad *BadRowsError
		most := int64(3000) // slack times the limit, and a unit
		if name == "data.gz" || name == "data.snappy" {
			most = 70_000 // a decompressor holds up to 256 KiB of text
		}
		if !errors.As(err, &bad) || bad.Rows > most || !strings.Contains(err.Error(), "even if the rest") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEarlyEndIsCertain reads random inputs with a limit close to their share of bad
// rows: what ends early would have ended at its end.
func TestEarlyEndIsCertain(t *testing.T) {
	rng := testseed.Rand(t)
	early := 0
	for range 60 {
		var text bytes.Buffer
		rows, bad := 200+rng.IntN(4000), 0
		share := rng.Float64() * 0.3
		for i := range rows {
			if i%(rows/10) == 0 {
				share = rng.Float64() * 0.3 // bad rows come in stretches
			}
			fmt.Fprintf(&text, "%d,1,%s,", i%2, strings.Repeat("c", rng.IntN(12)))
			if rng.Float64() < share {
				text.WriteString("b,,\n")
				bad++
			} else {
				text.WriteString("b\n")
			}
		}
		actual := float64(bad) / float64(rows)
		for _, limit := range []float64{actual * 0.3, actual * 0.8, actual * 1.001} {
			o := testOptions(adSchema(), write(t, t.TempDir(), "data", text.Bytes()))
			o.MaxBadFraction, o.ChunkBytes = limit, 1+int64(rng.IntN(8000))
			_, _, err := readAll(o)
			var past *BadRowsError
			if errors.As(err, &past) != (actual > limit) {
				t.Fatalf("%d of %d rows are bad, the limit is %v: %v", bad, rows, limit, err)
			}
			if past != nil && past.Rows < int64(rows) {
				early++
			}
		}
	}
	if early == 0 {
		t.Error("nothing ended early")
	}
}
