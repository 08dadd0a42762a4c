package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/reader"
	"aibox/reader/source"
)

// write puts a file into the directory and returns its path.
func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// testOptions tolerate every bad row and keep quiet.
func testOptions(schema reader.Schema, uris ...string) reader.Options {
	return reader.Options{
		Sources: source.New(source.Options{}), URIs: uris, Schema: schema, BatchSize: 4, BatchesPerPass: 2,
		MaxBadRows: -1, MaxBadFraction: -1, MaxLostFraction: -1, Threads: 2, Logger: slog.New(slog.DiscardHandler),
	}
}

// examplesOf prints what a reader makes of the input.
func examplesOf(t *testing.T, o reader.Options) string {
	t.Helper()
	ctx := context.Background()
	r, err := reader.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for {
		p, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%x %+v\n", p.Keys, p.Batches)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return b.String()
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func namedColumns(names ...string) (columns []OutputColumn) {
	for _, name := range names {
		columns = append(columns, OutputColumn{Column: reader.Column{Name: name}})
	}
	return columns
}
