package nearest

import (
	"strings"
)

// Suggest is the end of a message about a wrong name: the nearest candidate,
// and, unless there are many, all of them.
func Suggest(name string, candidates []string) string {
	if len(candidates) == 0 {
		return ""
	}
	s := ""
	if n := Name(name, candidates); n != "" {
		s = ": did you mean " + Quote(n) + "?"
	}
	const listed = 16 // more do not help the reader of a message
	if len(candidates) > listed {
		if s == "" {
			s = "; known names are " + strings.Join(candidates[:listed], ", ") + ", …"
		}
		return s
	}
	if s == "" {
		return "; allowed: " + strings.Join(candidates, ", ")
	}
	if len(candidates) == 1 {
		return s
	}
	return s + " (allowed: " + strings.Join(candidates, ", ") + ")"
}

// Quote puts a name into quotation marks, shortened where it is very long.
func Quote(s string) string {
	const shown = 80
	if len(s) > shown {
		s = strings.ToValidUTF8(s[:shown], "") + "…"
	}
	return `"` + strings.NewReplacer("\x00", `\0`, "\n", `\n`, "\t", `\t`, "\r", `\r`, `"`, `\"`).Replace(s) + `"`
}
