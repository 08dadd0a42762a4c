package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// The files in testdata were written by pyarrow 26. Those of booleans have 4,000 rows in
// two row groups of many pages, in the run-length encoding: runs of flag are 1, 2, 3, …
// long, and the second, fifth, … of them are false. Of maybe each seventh value is null, and list
// holds the next 0 to 3 flags. In booleans_v1 pages are of version 1.

// open opens a file of testdata until the test ends.
func open(t *testing.T, name string, options ...parquet.FileOption) (*os.File, *parquet.File) {
	t.Helper()
	r, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	info, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(r, info.Size(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return r, f
}

// texts are the values of all columns of a file as text; a value that is null is empty.
func texts(t *testing.T, name string) map[string][]string {
	t.Helper()
	r, f := open(t, name, parquet.ReadBufferSize(200))
	all := map[string][]string{}
	for g := range f.RowGroups() {
		for i, path := range f.Schema().Columns() {
			var v Values
			if err := v.Begin(f, r, g, i); err != nil {
				t.Fatal(err)
			}
			for {
				value, err := v.Peek()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s, column %s: %v", name, path[0], err)
				}
				text := ""
				if !value.IsNull() {
					text = value.String()
				}
				all[path[0]] = append(all[path[0]], text)
				v.Skip()
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

func TestRunsOfBooleans(t *testing.T) {
	var flag, maybe, list []string
	for run := 0; len(flag) < 4000; run++ {
		for range run + 1 {
			flag = append(flag, fmt.Sprint(run%3 != 1))
		}
	}
	flag = flag[:4000]
	for i, text := range flag {
		if i%7 == 6 {
			text = ""
		}
		maybe = append(maybe, text)
		if i%4 == 0 {
			list = append(list, "")
		}
		for j := range i % 4 {
			list = append(list, flag[(i+j)%len(flag)])
		}
	}
	for _, name := range []string{"booleans_v1.parquet", "booleans_v2.parquet"} {
		got := texts(t, name)
		for column, want := range map[string][]string{"flag": flag, "maybe": maybe, "list": list} {
			if !slices.Equal(got[column], want) {
				t.Errorf("%s: column %s is wrong:\n%v", name, column, got[column])
			}
		}
	}
}

// TestUnusedCategories: a dictionary may have more entries than the column has values.
func TestUnusedCategories(t *testing.T) {
	if got, want := fmt.Sprint(texts(t, "categories.parquet")["c"]), "[v0 v1 v2 v0 v1 v2 v0 v1 v2 v0]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDamagedRunsOfBooleans(t *testing.T) {
	for _, runs := range [][]byte{{}, {0x80}, {5, 1}, {9 << 1}, {4 << 1, 1}} {
		if err := decodeRuns(make([]byte, 2), runs, 9); !errors.Is(err, parquet.ErrCorrupted) {
			t.Errorf("%v: %v", runs, err)
		}
	}
	bits := make([]byte, 2)
	if err := decodeRuns(bits, []byte{0, 3 << 1, 1, 1 << 1, 0, 3, 0b10111}, 9); err != nil || bits[0] != 0b01110111 || bits[1] != 1 {
		t.Errorf("%08b, %v", bits, err)
	}
}
