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

// TestListingIsWrittenAndReadBack: what was read back finds the same changes.
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
