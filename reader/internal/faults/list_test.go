package faults

import (
	"bytes"
	"strings"
	"testing"
)

// TestRawExcerpt checks that a long row that is text is kept in memory only once.
func TestRawExcerpt(t *testing.T) {
	for pad := range 4 {
		if row := strings.Repeat("x", pad) + strings.Repeat("\u20ac", 200); rawExcerpt([]byte(row)) != "" {
			t.Errorf("%q", rawExcerpt([]byte(row)))
		}
	}
	row := append(bytes.Repeat([]byte("x"), 10), 0xff)
	if rawExcerpt(row) != "eHh4eHh4eHh4eP8=" {
		t.Error(rawExcerpt(row))
	}
}
