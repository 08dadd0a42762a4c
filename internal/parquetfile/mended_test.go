package parquetfile

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// The file empty_pages.parquet was written by pyarrow 26 with a page of version 2 for each row, the
// first of which has no values. Of 20 rows, row i has a null, an empty list, a list of i, and one
// of i, null and i+1, in turn; that is ints, and texts and flags are made of these.

func TestPagesWithoutValues(t *testing.T) {
	var ints []string
	for i := range 20 {
		ints = append(ints, [][]string{{""}, {""}, {fmt.Sprint(i)}, {fmt.Sprint(i), "", fmt.Sprint(i + 1)}}[i%4]...)
	}
	got := texts(t, "empty_pages.parquet")
	for column, text := range map[string]func(i int) string{
		"ints":  func(i int) string { return fmt.Sprint(i) },
		"texts": func(i int) string { return fmt.Sprint("t", i) },
		"flags": func(i int) string { return fmt.Sprint(i%3 == 0) },
	} {
		var want []string
		for _, x := range ints {
			if i, err := strconv.Atoi(x); err == nil {
				x = text(i)
			}
			want = append(want, x)
		}
		if !slices.Equal(got[column], want) {
			t.Errorf("column %s has %q, not %q", column, got[column], want)
		}
	}
}

// The file categories_fastparquet.parquet was written by fastparquet 2026.9. Row i of 250 has v0,
// v1, … in turn, of 200 categories; in c each seventh is null. There are 8 bytes after the places
// of 16 bits, which are no runs.

func TestBytesAfterPlaces(t *testing.T) {
	got := texts(t, "categories_fastparquet.parquet")
	for i := range 250 {
		want := fmt.Sprint("v", i%200)
		if got["d"][i] != want {
			t.Fatalf("row %d has %q in d, not %q", i, got["d"][i], want)
		}
		if i%7 == 6 {
			want = ""
		}
		if got["c"][i] != want {
			t.Fatalf("row %d has %q in c, not %q", i, got["c"][i], want)
		}
	}
	if n := len(got["d"]); n != 250 {
		t.Errorf("%d values", n)
	}
}

func TestDecodePlaces(t *testing.T) {
	for text, want := range map[string][]int32{
		"\x05":                                     {},
		"\x00\x06":                                 {0, 0, 0},
		"\x03\x03\x88\xc6\xfa":                     {0, 1, 2, 3, 4, 5, 6, 7},
		"\x03\x03\x88\xc6":                         {0, 1, 2, 3, 4}, // without the rest of the eight
		"\x03\x03\x88\xc6\x00":                     {0, 1, 2, 3, 4}, // with it
		"\x10\x02\x01\x02\x02\xff\xff\x00\x00":     {513, 65535},    // and more
		"\x10\x00\x07\x07\x03\x01\x00\x02\x00":     {1, 2},          // a run of none
		"\x20\x03\x01\x00\x00\x80\x02\x00\x00\x00": {-1<<31 + 1, 2},
	} {
		got, err := decodePlaces([]byte(text), len(want))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
		if _, err := decodePlaces([]byte(text), 9); err == nil {
			t.Errorf("%q has 9 places", text)
		}
	}
	for _, text := range []string{"", "\x21\x03", "\x10", "\x10\x02\x01", "\x10\x03\x01\x00\x01", "\x08\x80"} {
		if got, err := decodePlaces([]byte(text), 2); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
