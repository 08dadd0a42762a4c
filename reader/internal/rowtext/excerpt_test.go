package rowtext

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExcerptEndsBetweenCharacters(t *testing.T) {
	for pad := range 4 {
		row := []byte(strings.Repeat("x", pad) + strings.Repeat("\u20ac", 200))
		if got := Excerpt(row); !bytes.HasPrefix(row, []byte(got)) || !utf8.ValidString(got) || len(got) < prefixBytes-utf8.UTFMax {
			t.Errorf("%q", got)
		}
	}
}
