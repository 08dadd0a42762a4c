package reader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/reader/source"
)

// midway is a cursor in the middle of an input, and the reading that it comes from.
func midway(t testing.TB, o Options) (c *Cursor, i int, whole *reading) {
	t.Helper()
	whole = readFrom(t, o, nil, nil)
	i = len(whole.cursors) / 2
	if i == 0 {
		t.Fatal(whole.end)
	}
	return stored(t, whole.cursors[i]), i, whole
}

// TestNothingBeforeACursorIsReadAgain destroys what lies before the unit with which a
// reading starts.
func TestNothingBeforeACursorIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	row := Schema{Format: FormatParquet, Columns: []Column{{Name: "Y", Role: RoleLabel}, {Name: "X", Role: RoleDense}, {Name: "B", Role: RoleSparse}}}
	for name, c := range map[string]struct {
		schema Schema
		paths  []string // reading starts in the second one
		intact int      // bytes at the beginning of that one that are needed; < 0: all
		until  func(unit int) int
	}{
		"text": {adSchema(), []string{write(t, dir, "a", adRows(90)), write(t, dir, "b", adRows(150))}, 0, func(unit int) int { return 200*unit - 1 }},
		"gzip": {adSchema(), []string{write(t, dir, "a.gz", packed(t, source.Gzip, adRows(90))), write(t, dir, "b.gz", packed(t, source.Gzip, adRows(150)))}, -1, nil},
		"parquet": {row, []string{parquetGroups(t, dir, "a.parquet", 40, 50), parquetGroups(t, dir, "b.parquet", 40, 60, 50)}, 4, func(unit int) int {
			return 300 // of the pages of the first row group
		}},
	} {
		for _, shuffle := range []int{0, 7} {
			o := testOptions(c.schema, c.paths...)
			o.ChunkBytes, o.ShuffleBuffer, o.QuarantineRows = 200, shuffle, 100
			whole := readFrom(t, o, nil, nil)
			i := len(whole.cursors) * 3 / 4
			start := stored(t, whole.cursors[i])
			if start.File != 1 || start.Unit == 0 && c.until != nil {
				t.Fatalf("%s: pass %d of %d ends at %+v", name, i, len(whole.passes), start)
			}
			before := map[string][]byte{}
			for n, path := range c.paths {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				before[path] = bytes.Clone(data)
				from, until := 0, len(data)
				if n == 1 {
					if c.intact < 0 {
						continue
					}
					from, until = c.intact, c.until(start.Unit)
				}
				clear(data[from:until])
				overwrite(t, path, data)
			}
			rest := readFrom(t, o, start, whole.bad[:start.QuarantineBytes])
			if diff := whole.differs(i, rest); diff != "" {
				t.Errorf("%s, shuffled by %d, from %+v on: %s", name, shuffle, start, diff)
			}
			for path, data := range before {
				overwrite(t, path, data)
			}
		}
	}
}

// overwrite changes a file's contents, but not its modification time.
func overwrite(t testing.TB, path string, data []byte) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// TestCursorOfAnotherReading changes the input or the options: the error says what differs.
func TestCursorOfAnotherReading(t *testing.T) {
	dir := t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprint("part-", i)) }
	build := func() Options {
		o := testOptions(adSchema())
		for i := range 3 {
			write(t, dir, filepath.Base(name(i)), adRows(40+i))
			o.URIs = append(o.URIs, name(i))
		}
		return o
	}
	for what, c := range map[string]struct {
		change func(o *Options)
		want   []string
	}{
		"a file is longer":      {func(*Options) { write(t, dir, "part-0", adRows(41)) }, []string{name(0) + " had 360 bytes and now has 369"}},
		"a file is written to":  {func(*Options) { touch(t, name(1)) }, []string{name(1) + " had the modification time", "2001"}},
		"a file is missing":     {func(o *Options) { o.URIs = o.URIs[1:] }, []string{name(0) + " was removed"}},
		"the last is missing":   {func(o *Options) { o.URIs = o.URIs[:2] }, []string{name(2) + " was removed"}},
		"a file is new":         {func(o *Options) { o.URIs = append(o.URIs, write(t, dir, "new", adRows(3))) }, []string{"new was added"}},
		"a file before is new":  {func(o *Options) { o.URIs = append([]string{write(t, dir, "new", adRows(3))}, o.URIs...) }, []string{"new was added"}},
		"the order differs":     {func(o *Options) { o.URIs[0], o.URIs[1] = o.URIs[1], o.URIs[0] }, []string{name(1) + " now comes before " + name(0)}},
		"a file comes twice":    {func(o *Options) { o.URIs = append(o.URIs, o.URIs[0]) }, []string{name(0) + " was added"}},
		"the compression":       {func(o *Options) { o.Compression = "gzip" }, []string{`"compression"`, `"gzip"`}},
		"the epoch":             {func(o *Options) { o.Epoch = 1 }, []string{`"epoch" was "0" and now is "1"`}},
		"the seed":              {func(o *Options) { o.Seed = 1<<64 - 1 }, []string{`"seed"`, "18446744073709551615"}},
		"the limit":             {func(o *Options) { o.Limit = 100 }, []string{`"limit"`}},
		"the window":            {func(o *Options) { o.ShuffleBuffer = 9 }, []string{`"shuffle buffer"`}},
		"sampling":              {func(o *Options) { o.NegativeSampling = 0.5 }, []string{`"negative sampling"`}},
		"the batch size":        {func(o *Options) { o.BatchSize++ }, []string{`"batch size"`}},
		"the size of a pass":    {func(o *Options) { o.BatchesPerPass++ }, []string{`"batches per pass"`}},
		"the chunks":            {func(o *Options) { o.ChunkBytes = 100 }, []string{`"chunk bytes"`}},
		"the quarantine":        {func(o *Options) { o.QuarantineRows = 7 }, []string{`"quarantine rows"`}},
		"the limit of bad rows": {func(o *Options) { o.MaxBadRows = 7 }, []string{`"max bad rows"`}},
		"a column":              {func(o *Options) { o.Schema.Columns[3].Separator = "x" }, []string{`"schema"`}},
	} {
		o := build()
		start, _, _ := midway(t, o)
		o.Schema = adSchema()
		c.change(&o)
		o.Start = start
		r, err := Open(t.Context(), o)
		if err == nil {
			mustClose(t, r)
		}
		var other *CursorError
		if !errors.As(err, &other) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", what, err, want)
			}
		}
	}
}

// touch changes the modification time of a file.
func touch(t testing.TB, path string) {
	t.Helper()
	then := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

// TestCursorOfTheSameInput changes what makes no difference: empty files, how the input is
// listed, and how many threads read it.
func TestCursorOfTheSameInput(t *testing.T) {
	dir := t.TempDir()
	odd := write(t, dir, "not \xff UTF-8", adRows(20))
	a, b := write(t, dir, "a", adRows(50)), write(t, dir, "b.gz", packed(t, source.Gzip, adRows(50)))
	o := testOptions(adSchema(), a, b, odd)
	start, i, whole := midway(t, o)
	o.URIs = []string{a, write(t, dir, "_SUCCESS", nil), b, odd}
	o.Threads, o.AheadChunks = 5, 1
	var err error
	if o.Listing, err = o.Sources.List(t.Context(), o.URIs); err != nil {
		t.Fatal(err)
	}
	if diff := whole.differs(i, readFrom(t, o, start, nil)); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	o.Start = start
	if _, err := Open(t.Context(), o); !errors.Is(err, source.ErrNotFound) || !strings.Contains(err.Error(), b) {
		t.Errorf("after a file has disappeared: %v", err)
	}
}

// TestPlacesThatDoNotExist changes the numbers in cursors: reading ends with an error, or
// delivers something, but does not panic and does not wait for ever.
func TestPlacesThatDoNotExist(t *testing.T) {
	dir := t.TempDir()
	for _, paths := range [][]string{
		{write(t, dir, "a", adRows(60)), write(t, dir, "b", adRows(60))},
		{write(t, dir, "a.gz", packed(t, source.Gzip, adRows(60))), write(t, dir, "b.gz", packed(t, source.Gzip, adRows(60)))},
		{parquetGroups(t, dir, "a.parquet", 30, 30), parquetGroups(t, dir, "b.parquet", 30, 30)},
	} {
		o := testOptions(adSchema(), paths...)
		if strings.HasSuffix(paths[0], "parquet") {
			o.Schema = groupSchema()
		}
		o.ChunkBytes, o.ShuffleBuffer, o.Limit = 200, 10, 110
		for _, part := range []float64{0.3, 0.8} {
			whole := readFrom(t, o, nil, nil)
			c := whole.cursors[int(part*float64(len(whole.cursors)))]
			for _, n := range []int64{-1, 1, 9, 1000, 1 << 30, 1 << 59, -1 << 59} {
				for field, set := range map[string]func(c *Cursor){
					"file": func(c *Cursor) { c.File += int(n) }, "unit": func(c *Cursor) { c.Unit += int(n) },
					"skip": func(c *Cursor) { c.Skip += n * 3 }, "taken": func(c *Cursor) { c.Taken += int(n) * 10 },
				} {
					bad := *c
					set(&bad)
					if got := readFrom(t, o, &bad, nil).end; !strings.Contains(got, "reading is to start") && (n > 9 || n < -1) {
						t.Errorf("%s %s%+d: %s", paths[0], field, n, got)
					}
				}
				bad := *c
				bad.Counts.Examples, bad.Counts.Rows, bad.Line, bad.Passes, bad.Windows = n, n, n, n, uint64(n)
				readFrom(t, o, &bad, nil)
			}
		}
	}
}

// TestInterruptedStartGoesOn cancels calls of Next while the examples before the cursor are
// passed over and its window is filled.
func TestInterruptedStartGoesOn(t *testing.T) {
	dir := t.TempDir()
	o := testOptions(adSchema(), write(t, dir, "data", adRows(300)), write(t, dir, "data.gz", packed(t, source.Gzip, adRows(300))))
	o.ChunkBytes, o.ShuffleBuffer, o.BatchSize = 1500, 170, 16
	whole := readFrom(t, o, nil, nil)
	for i, c := range whole.cursors[1:] {
		o.Start = stored(t, c)
		r, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for n := i + 1; ; {
			ctx, cancel := context.WithCancel(t.Context())
			go cancel() // sooner or later
			p, err := r.Next(ctx)
			cancel()
			if errors.Is(err, context.Canceled) {
				continue
			}
			if errors.Is(err, io.EOF) && n == len(whole.passes) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := dumpExported(p); n >= len(whole.passes) || !strings.HasPrefix(whole.passes[n], got) {
				t.Fatalf("after pass %d, pass %d is\n%s", i, n, got)
			}
			n++
		}
		mustClose(t, r)
	}
}

// TestCursorsOfRandomReadings reads random inputs in random ways.
func TestCursorsOfRandomReadings(t *testing.T) {
	rng, dir := testseed.Rand(t), t.TempDir()
	for n := range 25 {
		var paths []string
		for i := range 1 + rng.IntN(4) {
			var text bytes.Buffer
			for range rng.IntN(60) {
				switch rng.IntN(12) {
				case 0:
					text.WriteString("1,x,a,b\n")
				case 1:
					text.Write(bytes.Repeat([]byte("z"), rng.IntN(400)))
				case 2:
					text.WriteString("\r\n")
				default:
					fmt.Fprintf(&text, "%d,1,%d,b|%d\n", rng.IntN(2), rng.IntN(30), rng.IntN(9))
				}
			}
			name := fmt.Sprintf("%d-%d%s", n, i, []string{"", ".gz", ".zst", ".snappy"}[rng.IntN(4)])
			data := packed(t, source.CompressionOf(name), text.Bytes())
			if rng.IntN(8) == 0 {
				data = data[:rng.IntN(len(data)+1)]
			}
			paths = append(paths, write(t, dir, name, data))
		}
		o := testOptions(adSchema(), paths...)
		o.ChunkBytes, o.MaxLineBytes, o.QuarantineRows = 1+rng.Int64N(300), 20+rng.IntN(100), rng.IntN(20)
		o.BatchSize, o.BatchesPerPass, o.ShuffleBuffer = 1+rng.IntN(20), 1+rng.IntN(3), rng.IntN(50)
		o.NegativeSampling, o.Limit, o.Seed = []float64{0, 0.1, 0.7}[rng.IntN(3)], []int64{0, rng.Int64N(100)}[rng.IntN(2)], rng.Uint64()
		o.KeepBadRows = rng.IntN(3) == 0
		o.MaxBadRows, o.MaxBadFraction, o.MaxLostFraction = rng.Int64N(20)-5, rng.Float64()-0.5, rng.Float64()-0.5
		checkCursors(t, fmt.Sprintf("%d: %+v", n, o.settings()), o)
	}
}

// TestCursorIsSmall checks that the size of an encoded cursor depends only on the number of files.
func TestCursorIsSmall(t *testing.T) {
	o := testOptions(adSchema(), write(t, t.TempDir(), "data", adRows(5000)))
	o.ShuffleBuffer = 1000
	c, _, _ := midway(t, o)
	c.Files = nil
	data, err := json.Marshal(c)
	if err != nil || len(data) > 2000 {
		t.Errorf("%d bytes: %s, %v", len(data), data, err)
	}
}
