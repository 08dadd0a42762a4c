package reader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/clicklog"
	"aibox/internal/generate"
	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// BenchmarkLog reads logRows examples at a time: logCopies links to files of a part of them,
// since to generate examples takes ten times as long as to read them.
const (
	logRows   = 1_000_000
	logCopies = 5
)

// criteoCardinalities are those of the 26 fields of a log like Criteo's, of 20 million
// values together.
var criteoCardinalities = []int64{
	1_500, 600, 5_000_000, 1_500_000, 300, 25, 12_000, 600, 3, 90_000, 5_700, 4_000_000, 3_200,
	27, 15_000, 2_500_000, 10, 5_600, 2_200, 4, 6_500_000, 18, 15, 280_000, 100, 140_000,
}

// logFiles are the files of one log in one format.
type logFiles struct {
	name   string
	schema reader.Schema
	files  []string
}

// writeLogs writes the same generated examples in each format.
func writeLogs(b *testing.B, sources *source.Sources) (logs []logFiles) {
	b.Helper()
	config := generate.Config{Seed: 1, DenseColumns: 13, BaseRate: 0.2, LinearStrength: 1, MissingRate: 0.05}
	for i, n := range criteoCardinalities {
		config.Fields = append(config.Fields, generate.Field{Name: fmt.Sprint("C", i+1), Cardinality: n, Skew: 1.05})
	}
	g, err := generate.New(config)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for _, l := range []logFiles{
		{name: "criteo", files: []string{"day"}},
		{name: "gzip", files: []string{"0.gz", "1.gz", "2.gz", "3.gz", "4.gz", "5.gz", "6.gz", "7.gz"}},
		{name: "csv", schema: reader.Schema{Format: reader.FormatCSV, Header: true}, files: []string{"day.csv"}},
		{name: "parquet", schema: reader.Schema{Format: reader.FormatParquet}, files: []string{"day.parquet"}},
	} {
		criteo := rowschema.CriteoSchema()
		l.schema.Columns = criteo.Columns
		if l.schema.Format == 0 {
			l.schema = criteo
		}
		w, err := clicklog.New(g, sources, l.schema, 0)
		if err != nil {
			b.Fatal(err)
		}
		for i := range l.files {
			l.files[i] = filepath.Join(dir, l.files[i])
			n := int64(logRows / logCopies / len(l.files))
			if err := w.Write(b.Context(), l.files[i], []clicklog.Part{{First: int64(i) * n, Count: n}}, generate.NewMeter(), func(int64) {}); err != nil {
				b.Fatal(err)
			}
		}
		for _, file := range l.files {
			for copy := 1; copy < logCopies; copy++ {
				link := filepath.Join(dir, fmt.Sprintf("%d-%s", copy, filepath.Base(file)))
				if err := os.Link(file, link); err != nil {
					b.Fatal(err)
				}
				l.files = append(l.files, link)
			}
		}
		logs = append(logs, l)
	}
	return logs
}

// BenchmarkLog reads a generated log like Criteo's into passes, by format, with one and with
// two cores. Besides bytes (as stored) and examples per second it reports the processor
// time per example, which other programs on the machine influence less, and what of it only
// the one goroutine that calls Next can spend (see SerialTime): no number of cores makes
// reading faster than that.
func BenchmarkLog(b *testing.B) {
	sources := source.New(source.Options{})
	for _, l := range writeLogs(b, sources) {
		for _, cores := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/cores=%d", l.name, cores), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
				o := reader.Options{
					Sources: sources, URIs: l.files, Schema: l.schema, BatchSize: 2048, BatchesPerPass: 16, Threads: cores,
					Logger: slog.New(slog.DiscardHandler),
				}
				b.ReportAllocs()
				began := processorTime()
				examples := int64(0)
				for b.Loop() {
					c := readLog(b, o)
					examples += c.Examples
					b.SetBytes(c.BytesTotal)
				}
				b.ReportMetric(float64(examples)/b.Elapsed().Seconds(), "examples/s")
				b.ReportMetric((processorTime()-began)/float64(examples), "cpu-ns/example")
				spent, c, err := reader.SerialTime(b.Context(), o)
				if err != nil || c.Examples != logRows {
					b.Fatal(c, err)
				}
				b.ReportMetric(spent/logRows, "serial-ns/example")
			})
		}
	}
}

func readLog(b *testing.B, o reader.Options) reader.Counts {
	r, err := reader.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	for {
		p, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		p.Recycle()
	}
	c := r.Counts()
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	if c.Examples != logRows {
		b.Fatal(c)
	}
	return c
}

// processorTime is the time in nanoseconds that the process has used.
func processorTime() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
