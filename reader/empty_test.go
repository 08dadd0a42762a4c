package reader

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/reader/source"
	"github.com/parquet-go/parquet-go"
)

// emptyBzip2 is what bzip2 makes of nothing.
const emptyBzip2 = "BZh9\x17\x72\x45\x38\x50\x90\x00\x00\x00\x00"

// TestEmptyParts reads a part in which there is nothing beside good ones, in every
// format and compression, and alone.
func TestEmptyParts(t *testing.T) {
	header := adSchema()
	header.Header = true
	svm := Schema{Format: FormatLibSVM}
	nothing := map[string][]byte{"bytes": nil, "a.bz2": []byte(emptyBzip2), "hadoop.snappy": {0, 0, 0, 0}, "lines": []byte("\n\n"), "bytes.gz": nil}
	for _, name := range []string{"a.gz", "a.zst", "a.snappy"} {
		nothing[name] = packed(t, source.CompressionOf(name), nil)
		nothing["lines-"+name] = packed(t, source.CompressionOf(name), []byte("\n"))
	}
	for _, c := range []struct {
		name   string
		schema Schema
		good   string
		header string
	}{
		{"csv with a header", header, "y,x,c,tags\n1,1,a,b\n", "y,x,c,tags"}, {"csv", adSchema(), "1,1,a,b\n", ""}, {"libsvm", svm, "1 3:1\n", ""},
	} {
		empty := map[string][]byte{}
		maps.Copy(empty, nothing)
		if c.header != "" {
			empty["header"] = []byte(c.header)
			empty["header.gz"] = packed(t, source.Gzip, []byte(c.header+"\n"))
		}
		for name, data := range empty {
			dir := t.TempDir()
			part, good := write(t, dir, name, data), write(t, dir, "good", []byte(c.good))
			for _, paths := range [][]string{{part, good}, {good, part}, {good, part, part, good}} {
				o := defaultLimits(testOptions(c.schema, paths...))
				o.MaxBadRows = 0
				_, counts, err := readAll(o)
				if err != nil || counts.Examples == 0 || counts.BytesRead != counts.BytesTotal || len(counts.Lost) != 0 {
					t.Errorf("%s: %s beside a good part: %v, %+v", c.name, name, err, counts)
				}
				if names, err := ColumnNames(t.Context(), o); err != nil || len(names) == 0 {
					t.Errorf("%s: %s beside a good part: the columns are %q, %v", c.name, name, names, err)
				}
			}
			if _, _, err := readAll(defaultLimits(testOptions(c.schema, part, part))); !errors.Is(err, ErrNoExamples) {
				t.Errorf("%s: only %s: %v", c.name, name, err)
			}
		}
	}
}

// TestEmptyPartsOfParquet checks files without rows that have the same columns as the others, or
// other ones, or none.
func TestEmptyPartsOfParquet(t *testing.T) {
	dir := t.TempDir()
	type row struct{ Y, B int64 }
	good, same, other := filepath.Join(dir, "good.parquet"), filepath.Join(dir, "same.parquet"), filepath.Join(dir, "other.parquet")
	for _, err := range []error{
		parquet.WriteFile(good, []row{{1, 2}, {0, 3}}), parquet.WriteFile(same, []row{}), parquet.WriteFile(other, []struct{ Z string }{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "Y", Role: RoleLabel}, {Name: "B", Role: RoleSparse}}}
	for _, paths := range [][]string{{same, good}, {good, other}, {other, same, good, same}} {
		_, counts, err := readAll(defaultLimits(testOptions(s, paths...)))
		if err != nil || counts.Examples != 2 || counts.BytesRead != counts.BytesTotal {
			t.Errorf("%v: %v, %+v", paths, err, counts)
		}
		if stored, err := StoredColumns(t.Context(), testOptions(s, paths...), []string{"B"}); err != nil || stored[0] == (Stored{}) {
			t.Errorf("%v: %v, %v", paths, stored, err)
		}
	}
	if _, _, err := readAll(testOptions(s, same, other)); !errors.Is(err, ErrNoExamples) {
		t.Errorf("only empty files: %v", err)
	}
}

// TestUnreadableHeaderIsALoss checks that a file that is truncated within its header is treated
// like any other truncated file.
func TestUnreadableHeaderIsALoss(t *testing.T) {
	header, dir := adSchema(), t.TempDir()
	header.Header = true
	good := packed(t, source.Gzip, append([]byte("y,x,c,tags\n"), adRows(5000)...))
	cut, whole := write(t, dir, "a.gz", good[:5]), write(t, dir, "b.gz", good)
	var lost *LostDataError
	if _, _, err := readAll(defaultLimits(testOptions(header, cut, whole))); !errors.As(err, &lost) || lost.Lost[0].URI != cut || !lost.Lost[0].Cut {
		t.Errorf("%v", err)
	}
	_, counts := mustRead(t, testOptions(header, cut, whole))
	if counts.Examples != 5000 || len(counts.Lost) != 1 || counts.BytesRead != counts.BytesTotal {
		t.Errorf("%+v", counts)
	}
}

// TestUnreadableFooterIsALoss checks that a Parquet file of which nothing can be read because its
// footer is missing or damaged is treated like other truncated or damaged files, beside good ones
// and alone. A file that is not Parquet at all is a mistake, which ends the job.
func TestUnreadableFooterIsALoss(t *testing.T) {
	type row struct{ Y, B int64 }
	dir := t.TempDir()
	good := filepath.Join(dir, "good.parquet")
	if err := parquet.WriteFile(good, make([]row, 5000)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, with string) []byte {
		return slices.Concat(data[:at], []byte(with), data[at+len(with):])
	}
	n := len(data)
	footer := n - 8 - int(binary.LittleEndian.Uint32(data[n-8:]))
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "Y", Role: RoleLabel}, {Name: "B", Role: RoleSparse}}}
	for name, c := range map[string]struct {
		data []byte
		cut  bool
	}{
		"one byte":        {data[:1], true},
		"begin":           {data[:7], true},
		"half":            {data[:n/2], true},
		"without footer":  {data[:footer], true},
		"last byte":       {data[:n-1], true},
		"begin of zeros":  {changed(0, "\x00\x00\x00\x00"), false},
		"length":          {changed(n-8, "\xff\xff\xff\x7f"), false},
		"zeros in footer": {changed(footer, strings.Repeat("\x00", 20)), false},
	} {
		bad := write(t, dir, "bad.parquet", c.data)
		for _, paths := range [][]string{{bad}, {bad, good}, {good, bad, good}} {
			var lost *LostDataError
			_, _, err := readAll(defaultLimits(testOptions(s, paths...)))
			if !errors.As(err, &lost) || lost.Lost[0].URI != bad || lost.Lost[0].Cut != c.cut || lost.Lost[0].Bytes < int64(len(c.data)) ||
				strings.Count(lost.Lost[0].String(), bad) != 1 {
				t.Errorf("%s in %d files: %v", name, len(paths), err)
			}
			_, counts, err := readAll(testOptions(s, paths...))
			if want := int64(5000 * (len(paths) - 1)); want == 0 && !errors.Is(err, ErrNoExamples) || want > 0 && err != nil ||
				counts.Examples != want || len(counts.Lost) != 1 || counts.BytesRead != counts.BytesTotal {
				t.Errorf("%s in %d files, with any loss allowed: %v, %+v", name, len(paths), err, counts)
			}
		}
		if names, err := ColumnNames(t.Context(), testOptions(s, bad, good)); err != nil || len(names) != 2 {
			t.Errorf("%s: the columns are %q, %v", name, names, err)
		}
		if stored, err := StoredColumns(t.Context(), testOptions(s, bad, good), []string{"B"}); err != nil || stored[0] == (Stored{}) {
			t.Errorf("%s: %v, %v", name, stored, err)
		}
	}
	var input *InputError
	if _, _, err := readAll(testOptions(s, good, write(t, dir, "other.parquet", adRows(9)))); !errors.As(err, &input) {
		t.Errorf("a text file: %v", err)
	}
}

// TestFootersAreNotKept checks that the footer of a Parquet file is not kept in memory after the
// file was read, and that files with the same columns share one description of them.
func TestFootersAreNotKept(t *testing.T) {
	type row struct{ Y, B int64 }
	dir := t.TempDir()
	var paths []string
	for i := range 40 {
		path := filepath.Join(dir, fmt.Sprintf("%02d.parquet", i))
		if err := parquet.WriteFile(path, []row{{0, int64(i)}, {1, 5}}); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "Y", Role: RoleLabel}, {Name: "B", Role: RoleSparse}}}
	o := testOptions(s, paths...)
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, r)
	open := func() int {
		r.rows.stream.mu.Lock()
		defer r.rows.stream.mu.Unlock()
		return len(r.rows.stream.mu.parquet)
	}
	for _, err = r.Next(t.Context()); err == nil; _, err = r.Next(t.Context()) {
		if n := open(); n > 3*o.Threads+2 {
			t.Fatalf("%d files are open", n)
		}
	}
	if !errors.Is(err, io.EOF) || open() != 0 {
		t.Errorf("%v; %d files are still held", err, open())
	}
	files := r.rows.stream.files
	for _, f := range files {
		if f.parquet.leaves != files[0].parquet.leaves {
			t.Fatalf("%s holds columns of its own", f.URI)
		}
	}
}
