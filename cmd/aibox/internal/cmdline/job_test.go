package cmdline

import (
	"slices"
	"testing"
)

// TestSplitNames checks that names with commas may be written in quotation marks.
func TestSplitNames(t *testing.T) {
	for list, want := range map[string][]string{
		"":                   nil,
		"user":               {"user"},
		"user,,ad":           {"user", "", "ad"},
		`user,"city, state"`: {"user", "city, state"},
		`"a,""b""",c`:        {`a,"b"`, "c"},
		`5" disc,c`:          {`5" disc`, "c"},
		`"new, n=old",x`:     {"new, n=old", "x"},
		"a\nb,c,":            {"a\nb", "c", ""},
	} {
		if got := SplitNames(list); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}
