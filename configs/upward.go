package configs

import (
	"os"
	"path/filepath"
	"strings"
)

// followUpward returns a local path in which no ".." follows a symbolic link. The system resolves
// ".." relative to the link's target, but package path/filepath removes the link and the ".." from
// the path, so parts of the program would see different paths. Other texts are returned unchanged.
func followUpward(text string) string {
	if strings.Contains(text, "://") {
		return text
	}
	const up = "/.."
	for done := 0; ; {
		before, rest, found := strings.Cut(text[done:], up)
		if !found {
			return text
		}
		link := filepath.Clean(text[:done+len(before)]) // no link is before a ".." in it
		done += len(before) + len(up)
		if done == len(up) || rest != "" && rest[0] != '/' { // of the root, or a name such as "..."
			continue
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		if to, err := filepath.EvalSymlinks(link); err == nil {
			text, done = filepath.Dir(to)+rest, 0
		}
	}
}
