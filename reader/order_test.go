package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aibox/reader/internal/rowwriter"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// packed is the data compressed.
func packed(t testing.TB, c source.Compression, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := rowwriter.Compress(c, &b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCompressionDoesNotMatter reads the same text in every compression, cut in
// several ways, with bad rows and lines that are too long.
func TestCompressionDoesNotMatter(t *testing.T) {
	data := criteoLines(200)
	long := append(bytes.Repeat([]byte("z"), 5000), '\n')
	data = slices.Concat(data[:5000], []byte("\n"), long, []byte("1\t2\r\n\n"), data[5000:], long, long[:3000])
	dir := t.TempDir()
	var want string
	for _, name := range []string{"a", "a.gz", "a.zst", "a.snappy", "a.deflate"} {
		path := write(t, dir, name, packed(t, source.CompressionOf(name), data))
		for _, chunk := range []int64{700, 3001, 1 << 20} {
			for _, threads := range []int{1, 4} {
				o := testOptions(rowschema.CriteoSchema(), path)
				o.ChunkBytes, o.Threads, o.MaxLineBytes = chunk, threads, 1000
				var bad bytes.Buffer
				o.Quarantine, o.QuarantineRows = &bad, 100
				passes, counts := mustRead(t, o)
				if counts.BytesRead != counts.BytesTotal {
					t.Errorf("%s: %d of %d bytes are read", name, counts.BytesRead, counts.BytesTotal)
				}
				// What is lost counts in stored bytes, which compression changes.
				lost := regexp.MustCompile(`"lost_(bytes|rows)":\d+`).ReplaceAllString(bad.String(), "")
				got := dump(passes) + strings.ReplaceAll(lost, path, "")
				if want == "" {
					want = got
				}
				if got != want {
					t.Fatalf("%s in chunks of %d by %d threads differs", name, chunk, threads)
				}
			}
		}
	}
}

func TestBrokenFileIsOneLoss(t *testing.T) {
	good, dir := criteoLines(300), t.TempDir()
	for _, c := range []struct {
		name string
		do   func(data []byte) []byte
	}{
		{"a.gz", func(d []byte) []byte { return d[:len(d)/2] }},
		{"b.gz", func(d []byte) []byte { d[len(d)/2] ^= 0x55; return d }},
		{"c.gz", func([]byte) []byte { return []byte("this is no gzip") }},
		{"d.gz", func(d []byte) []byte { return d[:5] }},
		{"e.gz", func(d []byte) []byte { return d[:len(d)-3] }},
		{"f.zst", func(d []byte) []byte { return d[:len(d)-10] }},
		{"g.snappy", func(d []byte) []byte { return d[:len(d)-10] }},
	} {
		path := write(t, dir, c.name, c.do(packed(t, source.CompressionOf(c.name), good)))
		next := write(t, dir, "next", criteoLines(10))
		o := testOptions(rowschema.CriteoSchema(), path, next)
		o.ChunkBytes = 10_000
		passes, counts := mustRead(t, o)
		if len(counts.Lost) != 1 {
			t.Errorf("%s: %+v", c.name, counts)
			continue
		}
		lost := counts.Lost[0]
		// A damaged deflate block may decode to garbage before it is noticed.
		if c.name != "b.gz" && (counts.BadRows != 0 || counts.Examples != lost.Line-1+10) {
			t.Errorf("%s: %+v", c.name, counts)
		}
		if lost.URI != path || lost.Bytes == 0 || lost.Cause == "" {
			t.Errorf("%s: %v", c.name, lost)
		}
		if n := len(described(passes)); int64(n) != counts.Examples {
			t.Errorf("%s: %d examples, counted %d", c.name, n, counts.Examples)
		}
		if counts.BytesRead != counts.BytesTotal {
			t.Errorf("%s: %d of %d bytes are read", c.name, counts.BytesRead, counts.BytesTotal)
		}
	}
}

func TestParquetRowGroups(t *testing.T) {
	const groupRows = 1 << 16 // of a parquetcolumn.Writer
	schema := mixedSchema(FormatParquet)
	path := filepath.Join(t.TempDir(), "a.parquet")
	rows := mixedRows(groupRows + 5000) // two row groups
	rows[groupRows+7][0] = "3"
	o := testOptions(schema, path)
	writeRows(t, &o, path, schema, rows)
	var want string
	for _, chunk := range []int64{4096, 1 << 24} { // the small one makes several blocks of a row group
		for _, threads := range []int{1, 3} {
			o.ChunkBytes, o.Threads, o.BatchSize = chunk, threads, 5000
			o.PassThrough, o.GroupBy = []string{"tags"}, "ad"
			passes, counts := mustRead(t, o)
			if counts.BadRows != 1 || counts.Bad[0].Example.Line != groupRows+8 || counts.Bad[0].Example.Offset != -1 ||
				counts.BytesRead != counts.BytesTotal {
				t.Fatalf("%+v", counts)
			}
			got := strings.Join(described(passes), "\n")
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("chunks of %d by %d threads differ", chunk, threads)
			}
		}
	}
	if !strings.Contains(want, `"`+rows[1][4]+`"`) {
		t.Errorf("the raw text %q is not passed through", rows[1][4])
	}
}

func TestShuffle(t *testing.T) {
	path := write(t, t.TempDir(), "data", criteoLines(100))
	read := func(change func(o *Options)) []string {
		o := testOptions(rowschema.CriteoSchema(), path)
		change(&o)
		passes, _ := mustRead(t, o)
		return described(passes)
	}
	plain := read(func(*Options) {})
	first := read(func(o *Options) { o.ShuffleBuffer = 30 })
	if slices.Equal(first, plain) {
		t.Error("nothing was shuffled")
	}
	for start := 0; start < 100; start += 30 { // each window is a permutation
		end := min(start+30, 100)
		a, b := slices.Clone(plain[start:end]), slices.Clone(first[start:end])
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("window %d..%d holds other examples", start, end)
		}
	}
	if !slices.Equal(first, read(func(o *Options) { o.ShuffleBuffer, o.BatchSize, o.BatchesPerPass, o.ChunkBytes = 30, 7, 5, 999 })) {
		t.Error("the order depends on the batch size or the chunks")
	}
	if slices.Equal(first, read(func(o *Options) { o.ShuffleBuffer, o.Epoch = 30, 1 })) {
		t.Error("two epochs have the same order")
	}
	if slices.Equal(first, read(func(o *Options) { o.ShuffleBuffer, o.Seed = 30, 1 })) {
		t.Error("two seeds have the same order")
	}
}

func TestSamplingAndLimit(t *testing.T) {
	path := write(t, t.TempDir(), "data", criteoLines(2000))
	o := testOptions(rowschema.CriteoSchema(), path)
	_, all := mustRead(t, o)
	o.NegativeSampling = 0.25
	_, counts := mustRead(t, o)
	negatives := all.Examples - all.Positives
	kept := counts.Examples - counts.Positives
	if counts.Positives != all.Positives || counts.Dropped != negatives-kept {
		t.Errorf("%+v", counts)
	}
	// Six standard deviations.
	if d := float64(kept) - 0.25*float64(negatives); d*d > 36*0.25*0.75*float64(negatives) {
		t.Errorf("%d of %d negatives are kept", kept, negatives)
	}
	first, _ := mustRead(t, o)
	o.Epoch = 1
	if second, _ := mustRead(t, o); slices.Equal(described(first), described(second)) {
		t.Error("both epochs keep the same negatives")
	}
	o.Limit = 10
	passes, counts := mustRead(t, o)
	if counts.Examples != 10 || len(described(passes)) != 10 || counts.BytesRead == counts.BytesTotal {
		t.Errorf("%+v", counts)
	}
}

func TestScan(t *testing.T) {
	schema := Schema{Format: FormatCSV, Columns: []Column{
		{Name: "y", Role: RoleLabel},
		{Name: "a", Role: RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformClip, Min: 0, Max: 10}, {Kind: rowschema.TransformStandardize}}},
		{Name: "b", Role: RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformStandardize, Mean: 1, Std: 2, HasMeanStd: true}}},
		{Name: "c", Role: RoleDense, Transforms: []rowschema.Transform{{Kind: rowschema.TransformStandardize}, {Kind: rowschema.TransformBucketize, Boundaries: []float64{0}}}},
		{Name: "d", Role: RoleDense, Transforms: []rowschema.Transform{
			{Kind: rowschema.TransformStandardize}, {Kind: rowschema.TransformClip, Min: -3, Max: 3},
		}},
	}}
	// A row that is bad for another column does not count.
	path := write(t, t.TempDir(), "data", []byte("1,2,5,1,\n0,4,,1,\n1,99,5,,\n0,,5,1,\n0,7,x,3,\n"))
	o := testOptions(schema, path)
	for _, chunk := range []int64{5, 1 << 20} {
		o.ChunkBytes = chunk
		s, err := Scan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if s.Examples != 4 || s.Positives != 2 || s.BaseRate != 0.5 {
			t.Errorf("%+v", s)
		}
		want := "[{a 1 3 5.333333333333334 3.39934634239519} {c 0 3 1 0} {d 0 0 0 0}]"
		if got := fmt.Sprint(s.Columns); got != want {
			t.Errorf("statistics %s, want %s", got, want)
		}
		applied := schema
		if err := s.Apply(&applied); err != nil {
			t.Fatal(err)
		}
		if !schema.NeedsScan() || applied.NeedsScan() {
			t.Error("Apply changed the schema it was given a copy of, or left a gap")
		}
		o := o
		o.Schema = applied
		passes, _ := mustRead(t, o)
		if got := passes[0].Batches[0].Dense[3*1]; got != float32((4-5.333333333333334)/3.39934634239519) {
			t.Errorf("a is standardized to %v", got)
		}
	}
	if err := new(Statistics).Apply(&schema); err == nil {
		t.Error("a gap was left without an error")
	}
	if err := (&Statistics{Columns: []ColumnStatistics{{Column: "b", Step: 3}}}).Apply(&schema); err == nil {
		t.Error("a step that is not there was filled")
	}
}

// TestNoGoroutineIsLeft closes and cancels readings at every stage.
func TestNoGoroutineIsLeft(t *testing.T) {
	dir := t.TempDir()
	text := write(t, dir, "data", criteoLines(500))
	gz := write(t, dir, "data.gz", packed(t, source.Gzip, criteoLines(500)))
	before := runtime.NumGoroutine()
	for passes := range 6 {
		for _, uri := range []string{text, gz} {
			for _, cancelled := range []bool{false, true} {
				ctx, cancel := context.WithCancel(t.Context())
				o := testOptions(rowschema.CriteoSchema(), uri, uri)
				o.ChunkBytes, o.Threads, o.BatchSize = 2000, 3, 20
				r, err := Open(ctx, o)
				if err != nil {
					t.Fatal(err)
				}
				for range passes {
					if _, err := r.Next(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if cancelled {
					cancel()
					for err == nil {
						_, err = r.Next(t.Context())
					}
					if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
						t.Errorf("after cancelling: %v", err)
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if _, err := r.Next(t.Context()); err == nil {
					t.Error("a closed reader goes on")
				}
				cancel()
			}
		}
	}
	eventually(t, fmt.Sprintf("no more than %d goroutines", before), func() bool { return runtime.NumGoroutine() <= before })
}

func TestInterruptedNextGoesOn(t *testing.T) {
	path := write(t, t.TempDir(), "data", criteoLines(300))
	for i := range 40 { // whether a cancelled context is noticed first is a matter of chance
		shuffle := 40 * (i % 2)
		o := testOptions(rowschema.CriteoSchema(), path)
		o.ShuffleBuffer, o.ChunkBytes, o.BatchSize = shuffle, 1000, 16
		if i%4 >= 2 { // a call whose context is cancelled finds the end of the input
			o.ChunkBytes, o.Limit = 1<<20, 90
		}
		want, _ := mustRead(t, o)
		r, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var got []*Pass
		for {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if p, err := r.Next(ctx); err == nil {
				got = append(got, p)
				continue
			} else if errors.Is(err, io.EOF) {
				break
			}
			p, err := r.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p)
		}
		if dump(got) != dump(want) {
			t.Fatal("an interrupted reading yields other passes")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestScanOfHugeNumbers checks that a number that is too large for float32 does not count in
// statistics, and that its row is bad unless the number is clipped.
func TestScanOfHugeNumbers(t *testing.T) {
	column := func(name string, more ...rowschema.Transform) Column {
		return Column{Name: name, Role: RoleDense, Transforms: append([]rowschema.Transform{{Kind: rowschema.TransformStandardize}}, more...)}
	}
	s := Schema{Format: FormatCSV, Header: true, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "a", Role: RoleSparse}, column("x", rowschema.Transform{Kind: rowschema.TransformClip, Min: -3, Max: 3}), column("z"),
	}}
	o := testOptions(s, write(t, t.TempDir(), "a.csv", []byte("y,a,x,z\n1,u,2,1\n0,u,1e300,2\n0,u,-1e308,3\n1,u,4,-1e39\n0,u,4,6\n")))
	statistics, err := Scan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(statistics.Columns), "[{x 0 2 3 1} {z 0 4 3 1.8708286933869707}]"; got != want {
		t.Errorf("statistics %s, want %s", got, want)
	}
	if err := statistics.Apply(&o.Schema); err != nil {
		t.Fatal(err)
	}
	passes, counts := mustRead(t, o)
	if counts.Rows != 5 || counts.BadRows != 1 {
		t.Fatalf("%+v", counts)
	}
	if dense := passes[0].Batches[0].Dense; dense[2] != 3 || dense[4] != -3 {
		t.Errorf("%v", dense)
	}
}
