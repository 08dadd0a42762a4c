package parquetfile

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// The file statistics.parquet was written by pyarrow 26, three pages of two rows each. The
// statistics of column whole have a minimum alone, and so have those of the second page of column
// pages, since the maximum is too long.

func TestStatisticsWithOneBound(t *testing.T) {
	file, err := os.ReadFile("testdata/statistics.parquet")
	if err != nil {
		t.Fatal(err)
	}
	end := len(file) - 8
	HideStatistics(file[end-int(binary.LittleEndian.Uint32(file[end:])) : end])
	long := func(text string) string { return strings.Repeat(text, 5000) }
	for name, want := range map[string][]string{
		"pages": {long("a"), long("z"), "b", long("z"), "c", "d"},
		"whole": {"x", long("y"), "x", long("y"), "x", long("y")},
		"n":     {"0", "1", "2", "3", "4", "5"},
	} {
		for buffer := 16; buffer < 400; buffer++ { // headers begin in one read and end in another
			f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)), parquet.ReadBufferSize(buffer))
			if err != nil {
				t.Fatal(err)
			}
			var v Values
			if err := v.Begin(f, bytes.NewReader(file), 0, slices.Index([]string{"pages", "whole", "n"}, name)); err != nil {
				t.Fatal(err)
			}
			for i, text := range want {
				got, err := v.Peek()
				if err != nil || got.String() != text {
					t.Fatalf("column %s, row %d, %d bytes at a time: %.20q, %v", name, i, buffer, got, err)
				}
				v.Skip()
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestHide(t *testing.T) {
	for n := 3; n < 40000; n += 1 + n/50 {
		text := bytes.Repeat([]byte{0xff}, n)
		text[n-1] = 0
		hide(text)
		read := &thriftText{data: text}
		fields := 0
		err := read.inStruct(func(id int64, kind byte) error {
			fields++
			return read.skip(kind)
		})
		if err != nil || read.at != n || fields != 1 {
			t.Errorf("%d bytes: %v at %d, %d fields", n, err, read.at, fields)
		}
	}
}

func TestForgedThrift(t *testing.T) {
	for name, text := range map[string][]byte{
		"structs": bytes.Repeat([]byte{0x1c}, 1<<20),
		"lists":   append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 1<<20)...),
		"many":    {0x49, 0xf1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"long":    {0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"empty":   {},
	} {
		before := bytes.Clone(text)
		HideStatistics(text)
		hideInHeader(text)
		if !bytes.Equal(text, before) {
			t.Errorf("%s: changed", name)
		}
	}
}
