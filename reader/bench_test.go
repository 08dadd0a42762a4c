package reader

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"aibox/reader/internal/faults"
	"aibox/reader/internal/rowtext"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// benchmarkRead reads rows of Criteo again and again.
func benchmarkRead(b *testing.B, name string, change func(o *Options)) {
	const rows = 20_000
	data := criteoLines(rows)
	o := testOptions(rowschema.CriteoSchema(), write(b, b.TempDir(), name, packed(b, source.CompressionOf(name), data)))
	o.BatchSize, o.BatchesPerPass, o.ChunkBytes, o.Threads = 2048, 4, 1<<20, 0
	change(&o)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := Open(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = r.Next(b.Context())
		}
		if !errors.Is(err, io.EOF) || r.Counts().Examples != rows {
			b.Fatal(err, r.Counts())
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "examples/s")
}

func BenchmarkCriteo(b *testing.B) { benchmarkRead(b, "data", func(*Options) {}) }

func BenchmarkCriteoOneThread(b *testing.B) {
	benchmarkRead(b, "data", func(o *Options) { o.Threads = 1 })
}

func BenchmarkCriteoGzip(b *testing.B) { benchmarkRead(b, "data.gz", func(*Options) {}) }

func BenchmarkCriteoShuffled(b *testing.B) {
	benchmarkRead(b, "data", func(o *Options) { o.ShuffleBuffer = 10_000 })
}

// BenchmarkGzipFiles reads 8 files of gzip by one thread and by two: rows of
// Criteo, and the same text with few line ends, which are bad rows that nothing is
// parsed of, so that decompressing is all there is to do.
func BenchmarkGzipFiles(b *testing.B) {
	const rows, files = 10_000, 8
	data := criteoLines(rows)
	for _, parse := range []bool{true, false} {
		name := "parsed"
		if !parse {
			name = "decompressed"
			for i := range data {
				if data[i] == '\n' && i%1000 != 0 {
					data[i] = ' '
				}
			}
		}
		dir, gz := b.TempDir(), packed(b, source.Gzip, data)
		var paths []string
		for i := range files {
			paths = append(paths, write(b, dir, fmt.Sprintf("part-%d.gz", i), gz))
		}
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
				o := testOptions(rowschema.CriteoSchema(), paths...)
				o.BatchSize, o.BatchesPerPass, o.ChunkBytes, o.Threads = 2048, 4, 1<<20, threads
				b.SetBytes(files * int64(len(data)))
				for b.Loop() {
					_, counts, err := readAll(o)
					if parse && (err != nil || counts.Examples != files*rows) || !parse && !errors.Is(err, ErrNoExamples) {
						b.Fatal(err, counts)
					}
				}
			})
		}
	}
}

// BenchmarkDecodeCriteo is what one worker does, without reading and passes.
func BenchmarkDecodeCriteo(b *testing.B) {
	const rows = 5000
	data := criteoLines(rows)
	o := testOptions(rowschema.CriteoSchema(), "data")
	p, err := compile(&o)
	if err != nil {
		b.Fatal(err)
	}
	m, _ := p.MapCells("", nil)
	d := p.NewDecoder(m)
	lines, bl := &rowtext.Lines{}, newBlock()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		bl.reset(nil)
		lines.ResetBytes(data, 0, 1<<20)
		for {
			line, _, _, err := lines.Next()
			if err != nil {
				break
			}
			if f := d.Decode(line, &bl.List); f.Reason != faults.None {
				b.Fatal(f)
			}
			bl.N++
		}
	}
	if bl.N != rows {
		b.Fatal(bl.N)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "examples/s")
}
