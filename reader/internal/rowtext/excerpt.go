package rowtext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// prefixBytes is how much of a bad row is kept for people to look at.
const prefixBytes = 256

// Excerpt is the beginning of a row as valid UTF-8.
func Excerpt(row []byte) string {
	return strings.ToValidUTF8(string(Prefix(row)), "\uFFFD")
}

// Prefix is the beginning of a row, cut between two characters.
func Prefix(row []byte) []byte {
	if len(row) <= prefixBytes {
		return row
	}
	end := prefixBytes
	for end > prefixBytes-utf8.UTFMax && !utf8.RuneStart(row[end]) {
		end--
	}
	return row[:end]
}

// shownBytes is how much of a header, name or cell an error shows.
const shownBytes = 60

// Shown is the beginning of a text in quotation marks.
func Shown(text []byte) string {
	if len(text) <= shownBytes {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q…", strings.ToValidUTF8(string(text[:shownBytes]), ""))
}

// InvalidAt is the index of the first byte of a row that is not valid UTF-8.
func InvalidAt(row []byte) int {
	for i := 0; i < len(row); {
		r, size := utf8.DecodeRune(row[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(row)
}
