package reader

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
)

// BenchmarkTSV and BenchmarkParquet read the columns of Criteo by name.
func BenchmarkTSV(b *testing.B)     { benchmarkNamed(b, FormatTSV, "a.tsv") }
func BenchmarkParquet(b *testing.B) { benchmarkNamed(b, FormatParquet, "a.parquet") }

func benchmarkNamed(b *testing.B, format Format, name string) {
	s := CriteoSchema()
	s.Format, s.Header = format, format == FormatTSV
	path := filepath.Join(b.TempDir(), name)
	o := testOptions(s, path)
	o.Threads, o.BatchSize = 1, 2048
	f, err := CreateRows(context.Background(), o.Sources, path, format, s)
	if err != nil {
		b.Fatal(err)
	}
	text := criteoLines(20_000)
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		if err := f.Write(bytes.Split(line, []byte("\t"))); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r, err := Open(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = r.Next(context.Background())
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		mustClose(b, r)
	}
}
