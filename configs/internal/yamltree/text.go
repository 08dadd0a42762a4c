package yamltree

import "strings"

// Normalize returns the text of a file without a byte order mark, and with Unix line ends.
func Normalize(data []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
}

// MaxNesting bounds the depth of brackets, dashes and indentation: the YAML
// library takes quadratic time in it.
const MaxNesting = 1000

// Nesting is an upper estimate of how deep the YAML is nested. Brackets in
// texts and comments count too, which does no harm below MaxNesting.
func Nesting(text string) int {
	deepest, brackets := 0, 0
	for line := range strings.Lines(text) {
		// Lists of lists may be on one line, "- - - x". A line of many keys is not
		// YAML in block style, but the library takes as long to find that out.
		if !strings.ContainsAny(line, "[{") {
			deepest = max(deepest, strings.Count(line, "- ")+strings.Count(line, "? ")+strings.Count(line, ": "))
		}
		for i := range len(line) {
			switch line[i] {
			case '[', '{':
				brackets++
				deepest = max(deepest, brackets)
			case ']', '}':
				brackets = max(0, brackets-1)
			}
		}
	}
	return deepest
}
