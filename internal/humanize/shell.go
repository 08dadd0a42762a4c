package humanize

import "strings"

// ShellWord prints a path as a shell reads it: as one word, in quotation marks if it has
// characters that mean something to the shell.
func ShellWord(path string) string {
	if path != "" && !strings.ContainsAny(path, " \t\n'\"\\$`&|;<>()*?[]{}#~!=^%") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
