package reader

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// fuzzText reads the data in one chunk and cut to pieces and expects the same
// described and bad rows, consistent counts, and rows within their bounds.
func fuzzText(f *testing.F, schema Schema, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed), uint8(0))
		f.Add([]byte(seed), uint8(200))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		path := write(t, dir, fmt.Sprintf("data%d", os.Getpid()), data)
		packedPath := write(t, dir, fmt.Sprintf("data%d.zst", os.Getpid()), packed(t, source.Zstd, data))
		var want string
		for i, uri := range []string{path, path, packedPath} {
			o := testOptions(schema, uri)
			o.Sources = source.New(source.Options{Logger: slog.New(slog.DiscardHandler)})
			o.MaxLineBytes = 60
			if i > 0 {
				o.ChunkBytes = 1 + int64(cut)
			}
			var bad bytes.Buffer
			o.Quarantine, o.QuarantineRows = &bad, 1<<30
			passes, counts, err := readAll(o)
			if len(data) == 0 && uri == packedPath {
				continue // an empty file there is a bad stream
			}
			if counts.Rows != counts.Examples+counts.BadRows || int64(len(described(passes))) != counts.Examples {
				t.Fatalf("%+v with %d examples", counts, len(described(passes)))
			}
			got := dump(passes) + strings.ReplaceAll(bad.String(), filepath.Base(uri), "")
			if err != nil {
				got += strings.ReplaceAll(err.Error(), uri, "")
			}
			got = lostSize.ReplaceAllString(got, "") // of a file that is compressed, or not
			if i == 0 {
				want = got
			} else if got != want {
				t.Fatalf("%s in chunks of %d:\n%s\nwant\n%s", uri, o.ChunkBytes, got, want)
			}
		}
	})
}

var lostSize = regexp.MustCompile(`"lost_bytes":\d+(,"lost_rows":\d+)?|[^;]* rows? in \d+ bytes?`)

func FuzzCriteo(f *testing.F) {
	s := rowschema.CriteoSchema()
	s.Columns = append(s.Columns[:3:3], s.Columns[14:16]...)
	fuzzText(f, s, "1\t2\t\tab\tcd\n0\t-1\t5\t\t\r\n\n", strings.Repeat("x", 90)+"\n1\t2\t\t\t")
}

func FuzzCSV(f *testing.F) {
	fuzzText(f, adSchema(), "1,2.5,\"a,\"\"b\",p|q\n0,,,\n", "\ufeff1,nan,a,b\r\n\r\n2,1e3,\"x\n", "1,1,\xff,\n")
}

func FuzzLibSVM(f *testing.F) {
	fuzzText(f, Schema{Format: FormatLibSVM}, "+1 qid:3 3:1 07:0.5 # x\n-1\n", "1 99999999999999999999:1\n0 1:1e999")
}

func FuzzLibFFM(f *testing.F) {
	fuzzText(f, Schema{Format: FormatLibFFM, Columns: []Column{
		{Name: "a", Role: RoleSparse, HasFieldNumber: true}, {Name: "x", Role: RoleDense, FieldNumber: 2, HasFieldNumber: true},
	}}, "1 0:7:1 2:1:-3 4:4:4\n", "0 0:1:2:3\n1 0::\n", "0 0")
}

// FuzzParquet damages a small file: an error or fewer rows, never a panic.
func FuzzParquet(f *testing.F) {
	dir := f.TempDir()
	schema := mixedSchema(FormatParquet)
	path := filepath.Join(dir, "good.parquet")
	o := testOptions(schema, path)
	writeRows(f, &o, path, schema, mixedRows(20))
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), uint8(0))
	f.Add(uint16(len(good)-20), uint8(7))
	f.Add(uint16(100), uint8(255))
	f.Add(uint16(1660), uint8('$')) // a page with fewer values than levels: read for ever
	f.Add(uint16(1524), uint8(2))   // LZ4 for zstd
	f.Fuzz(func(t *testing.T, at uint16, flip uint8) {
		data := bytes.Clone(good)
		data[int(at)%len(data)] ^= flip
		o := testOptions(schema, write(t, dir, fmt.Sprintf("bad%d", os.Getpid()), data))
		passes, counts, err := readAll(o)
		if flip == 0 && (err != nil || counts.Examples != 20) {
			t.Fatalf("%+v %v", counts, err)
		}
		if err == nil && int64(len(described(passes))) != counts.Examples {
			t.Fatalf("%+v", counts)
		}
	})
}

// FuzzCursors cuts any text to pieces, and reads it again from every cursor on.
func FuzzCursors(f *testing.F) {
	f.Add([]byte("1,2.5,a,p|q\n0,,,\n1,x,a,b\n"+strings.Repeat("z", 90)+"\n0,1,a,b\n1,1,a"), uint8(3), uint16(0))
	f.Add([]byte(strings.Repeat("1,1,a,b\n0,1,a,c\nx\n", 9)), uint8(20), uint16(0xffff))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, cut uint8, how uint16) {
		o := testOptions(adSchema(), write(t, dir, fmt.Sprint("a", os.Getpid()), data),
			write(t, dir, fmt.Sprintf("b%d.zst", os.Getpid()), packed(t, source.Zstd, data)))
		o.Sources = source.New(source.Options{Logger: slog.New(slog.DiscardHandler)})
		o.ChunkBytes, o.MaxLineBytes, o.BatchSize, o.QuarantineRows = 1+int64(cut), 30, 1+int(how&3), int(how>>2&7)
		if how>>5&1 == 1 {
			o.ShuffleBuffer = int(how >> 6 & 15)
		}
		if how>>10&1 == 1 {
			o.NegativeSampling = 0.5
		}
		if how>>11&1 == 1 {
			o.Limit = int64(how >> 6 & 31)
		}
		if how>>12&1 == 1 {
			o.MaxBadFraction = 0.3
		}
		o.KeepBadRows = how>>13&1 == 1
		checkCursors(t, "fuzz", o)
	})
}
