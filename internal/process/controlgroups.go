package process

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// controlGroup is a control group that may limit what the process takes.
type controlGroup struct {
	dir   string
	first bool // version 1 of control groups, whose files have other names
}

// controlGroups returns the control groups of one controller whose limits apply to the process: its
// own and all above it. In a container, the path that Linux reports may exist only on the host; the
// group at the root of the mounted file system is then the container's.
func controlGroups(root, controller string) []controlGroup {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		text = []byte("0::/\n")
	}
	var groups []controlGroup
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // number:controllers:path
		if len(parts) < 3 || parts[1] != "" && parts[1] != controller {
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			groups = append(groups, controlGroup{filepath.Join(root, "sys/fs/cgroup", parts[1], at), parts[1] != ""})
			if at == "/" {
				break
			}
		}
	}
	return groups
}
