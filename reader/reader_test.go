package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/reader/internal/hashes"
	"aibox/reader/rowschema"
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
func testOptions(schema Schema, uris ...string) Options {
	return Options{
		Sources: source.New(source.Options{}), URIs: uris, Schema: schema, BatchSize: 4, BatchesPerPass: 2,
		MaxBadRows: -1, MaxBadFraction: -1, MaxLostFraction: -1, Threads: 2, Logger: slog.New(slog.DiscardHandler),
	}
}

// readAll reads all passes.
func readAll(o Options) (passes []*Pass, counts Counts, err error) {
	ctx := context.Background()
	r, err := Open(ctx, o)
	if err != nil {
		return nil, Counts{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		p, err := r.Next(ctx)
		if err == io.EOF {
			return passes, r.Counts(), nil
		}
		if err != nil {
			return passes, r.Counts(), err
		}
		passes = append(passes, p)
	}
}

// mustClose closes the reader.
func mustClose(t testing.TB, r *Reader) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// mustRead is readAll where nothing may go wrong.
func mustRead(t testing.TB, o Options) ([]*Pass, Counts) {
	t.Helper()
	passes, counts, err := readAll(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range passes {
		for i := range p.Batches {
			if b := &p.Batches[i]; !b.Made() || (&Batch{N: b.N, Offsets: b.Offsets, Index: b.Index}).Made() {
				t.Fatalf("mini-batch %d of pass %d: made %v", i, p.Seq, b.Made())
			}
		}
	}
	return passes, counts
}

// dump writes everything of the passes that must not depend on cutting.
func dump(passes []*Pass) string {
	var b strings.Builder
	for _, p := range passes {
		fmt.Fprintf(&b, "pass %d keys %x\n", p.Seq, p.Keys)
		for i := range p.Batches {
			fmt.Fprintf(&b, "%+v\n", p.Batches[i])
		}
	}
	return b.String()
}

// described writes each example on a line of its own, whatever mini-batch it is
// in: label, weight, dense features, and each bag's keys with weights.
func described(passes []*Pass) (lines []string) {
	for _, p := range passes {
		for i := range p.Batches {
			batch := &p.Batches[i]
			for e := range batch.N {
				var b strings.Builder
				fmt.Fprintf(&b, "%v", batch.Labels[e])
				if batch.Weights != nil {
					fmt.Fprintf(&b, " w%v", batch.Weights[e])
				}
				d := len(batch.Dense) / batch.N
				fmt.Fprintf(&b, " %v", batch.Dense[e*d:(e+1)*d])
				f := (len(batch.Offsets) - 1) / batch.N
				for k := range f {
					b.WriteString(" [")
					for j := batch.Offsets[e*f+k]; j < batch.Offsets[e*f+k+1]; j++ {
						fmt.Fprintf(&b, " %016x", p.Keys[batch.Rows[batch.Index[j]]])
						if batch.BagWeights != nil {
							fmt.Fprintf(&b, "*%v", batch.BagWeights[j])
						}
					}
					b.WriteString(" ]")
				}
				if batch.Groups != nil {
					fmt.Fprintf(&b, " g%x", batch.Groups[e])
				}
				for c := range batch.Columns {
					fmt.Fprintf(&b, " %q", batch.Columns[c][e])
				}
				lines = append(lines, b.String())
			}
		}
	}
	return lines
}

// criteoLines makes rows of Criteo.
func criteoLines(rows int) []byte {
	var b bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&b, "%d", hashes.Random(1, 2, 3, uint64(i))%2)
		for c := range 13 {
			if v := hashes.Random(1, 2, uint64(c+10), uint64(i)); v%5 == 0 {
				b.WriteString("\t")
			} else {
				fmt.Fprintf(&b, "\t%d", int64(v%3000)-2)
			}
		}
		for c := range 26 {
			if v := hashes.Random(1, 2, uint64(c+50), uint64(i)); v%9 == 0 {
				b.WriteString("\t")
			} else {
				fmt.Fprintf(&b, "\t%08x", v%1000*2654435761&0xffffffff)
			}
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}

func TestCriteo(t *testing.T) {
	path := write(t, t.TempDir(), "day_0", criteoLines(103))
	passes, counts := mustRead(t, testOptions(rowschema.CriteoSchema(), path))
	if counts.Examples != 103 || counts.Rows != 103 || counts.BadRows != 0 || counts.BytesRead != counts.BytesTotal {
		t.Errorf("counts %+v", counts)
	}
	if n := len(described(passes)); n != 103 {
		t.Errorf("%d examples", n)
	}
	for i, p := range passes {
		if p.Seq != int64(i) {
			t.Errorf("pass %d has number %d", i, p.Seq)
		}
		if want := min(2, (103-i*8+3)/4); len(p.Batches) != want {
			t.Errorf("pass %d has %d mini-batches, want %d", i, len(p.Batches), want)
		}
	}
}

// TestCuttingDoesNotMatter is the package's main promise.
func TestCuttingDoesNotMatter(t *testing.T) {
	dir := t.TempDir()
	data := criteoLines(300)
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := 7; i < len(lines); i += 31 { // bad rows of several kinds
		switch i % 3 {
		case 0:
			lines[i] = []byte("1\tx\n")
		case 1:
			lines[i] = append([]byte("7"), lines[i]...)
		default:
			lines[i] = bytes.Repeat([]byte("long "), 300)
			lines[i] = append(lines[i], "\r\n\n\r\n"...)
		}
	}
	a := write(t, dir, "a", bytes.Join(lines[:100], nil))
	b := write(t, dir, "b", bytes.Join(lines[100:], nil))
	for _, shuffle := range []int{0, 50} {
		var want, wantBad string
		for _, threads := range []int{1, 3} {
			for _, chunk := range []int64{61, 1000, 1 << 20} {
				o := testOptions(rowschema.CriteoSchema(), a, b)
				o.Threads, o.ChunkBytes, o.MaxLineBytes = threads, chunk, 1000
				o.ShuffleBuffer, o.NegativeSampling, o.GroupBy, o.PassThrough = shuffle, 0.7, "C1", []string{"I2", "label"}
				var bad bytes.Buffer
				o.Quarantine, o.QuarantineRows = &bad, 100
				passes, counts := mustRead(t, o)
				got := dump(passes) + fmt.Sprintf("%+v", counts)
				if want == "" {
					want, wantBad = got, bad.String()
				}
				if got != want {
					t.Fatalf("threads %d, chunks of %d: the passes differ", threads, chunk)
				}
				if bad.String() != wantBad {
					t.Fatalf("threads %d, chunks of %d: the bad rows differ:\n%s\n%s", threads, chunk, bad.String(), wantBad)
				}
				if counts.BadRows != 10 || counts.BytesRead != counts.BytesTotal {
					t.Fatalf("counts %+v", counts)
				}
			}
		}
	}
}
