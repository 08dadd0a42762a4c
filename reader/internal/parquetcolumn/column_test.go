package parquetcolumn

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/parquet-go/parquet-go"

	"aibox/reader/source"
)

// written are columns of all kinds, and cells of them.
var written = []struct {
	Written
	cells  string
	simple bool // values are decoded in bulk
}{
	{Written{Name: "number", Number: true}, "1.5  -3 1e+21", true},
	{Written{Name: "text"}, "a  ü 12", true},
	{Written{Name: "words"}, words(2*BulkRows + 10), true}, // a dictionary of several chunks
	{Written{Name: "list", List: true, Separator: "|"}, "a|b  c d|e|f", false},
	{Written{Name: "int", Type: parquet.Int(32).Type()}, "-5  2147483647", true},
	{Written{Name: "unsigned", Type: parquet.Uint(32).Type()}, "4294967295  7", true},
	{Written{Name: "large", Type: parquet.Uint(64).Type()}, "18446744073709551615  7", true},
	{Written{Name: "decimal", Type: parquet.Decimal(2, 9, parquet.Int64Type).Type()}, "-0.05  12.00", false},
	{Written{Name: "flag", Type: parquet.BooleanType}, "true  false", false},
	{Written{Name: "float", Type: parquet.FloatType}, "0.1  20000000", true},
	{Written{Name: "numbers", Type: parquet.DoubleType, List: true, Separator: "\xff"}, "0.1\xff2  3", false},
}

// words are n words.
func words(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint("w", i))
	}
	return strings.Join(list, " ")
}

// writeFile writes a file of these columns, whose cells are repeated.
func writeFile(t *testing.T, rows int) (path string) {
	t.Helper()
	var file bytes.Buffer
	var columns []Written
	for i := range written {
		columns = append(columns, written[i].Written)
	}
	w := NewWriter(&file, columns)
	for row := range rows {
		var cells [][]byte
		for i := range written {
			cells = append(cells, cell(i, row))
		}
		if err := w.Encode(cells); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "a.parquet")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func cell(column, row int) []byte {
	cells := strings.Split(written[column].cells, " ")
	return []byte(cells[row%len(cells)])
}

// hashes converts values to hashes of their texts, except those that begin with a 2 or a b.
type hashes struct{}

func (hashes) Convert(v *Values, at []int32, out []Result) {
	for i, p := range at {
		out[i] = Result{}
		if p < 0 {
			continue
		}
		var text []byte
		if v.Texts() {
			text = v.Text(int(p))
		} else {
			text = v.AppendNumber(nil, int(p))
		}
		if out[i].State = Slow; text[0] != '2' && text[0] != 'b' {
			out[i] = Result{Key: xxhash.Sum64(text), Number: float32(len(text)), State: Ready}
		}
	}
}

// TestColumns checks that written columns are read back as the same text: value by value, and in
// bulk, row by row and many rows at a time.
func TestColumns(t *testing.T) {
	const rows = 10_000
	sources := source.New(source.Options{})
	listing, err := sources.List(t.Context(), []string{writeFile(t, rows)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), sources, listing.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	if groups, err := f.Groups(); err != nil || fmt.Sprint(groups) != fmt.Sprint([]int{rows}) {
		t.Fatal(groups, err)
	}
	for i := range written {
		leaf, err := f.Find(written[i].Name)
		if err != nil || leaf.List != written[i].List {
			t.Fatalf("%+v, %v", leaf, err)
		}
		for way := range 3 {
			bulk := way > 0
			c, err := f.Column(0, leaf)
			if err != nil {
				t.Fatal(err)
			}
			if bulk && c.Simplify(hashes{}, true) != written[i].simple {
				t.Fatalf("column %s: %v", leaf.Name, c.bulk)
			}
			for row := 0; row < rows; row++ {
				if way == 2 && c.bulk != nil {
					if row += takePlaces(t, c, i, row); row == rows {
						break
					}
				}
				want := cell(i, row)
				if r := c.Result(); r.State != Slow {
					if !bulk || (r.State == Missing) != (len(want) == 0) || r.State == Ready && r.Key != xxhash.Sum64(want) {
						t.Fatalf("column %s, row %d: %+v, want %q", leaf.Name, row, r, want)
					}
					continue
				}
				var got [][]byte
				v, err := c.Next()
				for ; v != nil && err == nil; v, err = c.Next() {
					got = append(got, bytes.Clone(c.Text(v)))
				}
				if text := bytes.Join(got, []byte(written[i].Separator)); err != nil || !bytes.Equal(text, want) || c.Seen() != len(got) {
					t.Fatalf("column %s, row %d: %q, %v, want %q", leaf.Name, row, text, err, want)
				}
			}
			if v, err := c.Next(); v != nil || err == nil {
				t.Errorf("column %s: a value behind the last row", leaf.Name)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// takePlaces takes the rows for which there are places, checks their keys and returns how many they are.
func takePlaces(t *testing.T, c *Column, column, row int) (n int) {
	t.Helper()
	for {
		places := c.Places()
		if len(places) == 0 {
			return n
		}
		keys := c.Keys()
		for i, place := range places {
			want := cell(column, row+n+i)
			if (place < 0) != (len(want) == 0) || place >= 0 && keys[place] != xxhash.Sum64(want) {
				t.Fatalf("column %s, row %d: place %d, want %q", c.Leaf.Name, row+n+i, place, want)
			}
		}
		c.Skip(len(places))
		n += len(places)
	}
}
