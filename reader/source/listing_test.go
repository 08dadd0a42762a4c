package source

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestSameFiles checks that the error names the first file that differs.
func TestSameFiles(t *testing.T) {
	then := time.Date(2026, 11, 20, 1, 2, 3, 4, time.UTC)
	file := func(name string, size int64, later time.Duration) File {
		return File{URI: name, Size: size, ModTime: then.Add(later)}
	}
	a, b, c := file("hdfs://ns/a", 1, 0), file("hdfs://ns/b", 2, 0), file("hdfs://ns/c", 3, 0)
	unknown, packed, local := b, b, b
	unknown.ModTime, packed.Compression, local.ModTime = time.Time{}, Gzip, b.ModTime.Local()
	for _, test := range []struct {
		before, now []File
		want        string // "": they are the same
	}{
		{nil, nil, ""},
		{[]File{a, b, c}, []File{a, b, c}, ""},
		{[]File{a, b}, []File{a, unknown}, ""},
		{[]File{a, b}, []File{a, local}, ""},
		{[]File{{URI: "\xff"}}, []File{{URI: "\ufffd"}}, ""}, // as it is read from JSON
		{[]File{a, b}, []File{a, file(b.URI, 2, time.Millisecond)}, "hdfs://ns/b had the modification time 2026-11-20 01:02:03.000 and now has 2026-11-20 01:02:03.001"},
		{[]File{a, b}, []File{a, file(b.URI, 5, 0)}, "hdfs://ns/b had 2 bytes and now has 5"},
		{[]File{a, b}, []File{a, packed}, "hdfs://ns/b had the compression none and now has gzip"},
		{[]File{a, b, c}, []File{a, c}, "hdfs://ns/b was removed"},
		{[]File{a, b}, []File{a}, "hdfs://ns/b was removed"},
		{[]File{a, c}, []File{a, b, c}, "hdfs://ns/b was added"},
		{nil, []File{a}, "hdfs://ns/a was added"},
		{[]File{a}, []File{a, a}, "hdfs://ns/a was added"},
		{[]File{a, b, c}, []File{a, c, b}, "hdfs://ns/c now comes before hdfs://ns/b"},
	} {
		got := ""
		if err := SameFiles(test.before, test.now); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v and %v: %q, want %q", test.before, test.now, got, test.want)
		}
	}
}

// TestListingIsWrittenAndReadBack checks that a listing that was written and read back finds the
// same changes.
func TestListingIsWrittenAndReadBack(t *testing.T) {
	dir, s := tree(t, "0123456789"), New(Options{})
	l, err := s.List(t.Context(), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back Listing
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	for i := range back.Files {
		if !back.Files[i].ModTime.Equal(l.Files[i].ModTime) {
			t.Errorf("%s: %v, want %v", data, back.Files[i], l.Files[i])
		}
		back.Files[i].ModTime = l.Files[i].ModTime
	}
	if !reflect.DeepEqual(&back, l) || l.Bytes() == 0 {
		t.Errorf("%s is read as %+v, want %+v", data, back, l)
	}
	f := back.Files[0]
	if err := s.Unchanged(t.Context(), f); err != nil {
		t.Error(err)
	}
	// One byte more, with the time of before.
	if err := os.WriteFile(f.URI, []byte("0123456789a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(f.URI, time.Time{}, f.ModTime); err != nil {
		t.Fatal(err)
	}
	if err := s.Unchanged(t.Context(), f); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), f.URI) {
		t.Errorf("a longer file: %v", err)
	}
	if err := os.Remove(f.URI); err != nil {
		t.Fatal(err)
	}
	if err := s.Unchanged(t.Context(), f); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), f.URI) || !strings.Contains(err.Error(), "when the input was listed") {
		t.Errorf("a removed file: %v", err)
	}
}
