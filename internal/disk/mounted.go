package disk

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Fstab is the table of what is to be mounted on this machine. Tests set it.
var Fstab = "/etc/fstab"

// mountinfo is the table of what is mounted.
var mountinfo = "/proc/self/mountinfo"

// Unmounted returns the mount point in or at which a path lies and where a file system is to be mounted, as /etc/fstab
// says, but is not; "": there is none. What is written beneath such a mount point fills another disk, and vanishes
// once the file system is mounted.
func Unmounted(path string) string {
	points := mountPoints(Fstab, 1)
	if len(points) == 0 {
		return ""
	}
	i := Innermost(points, realPath(path))
	if i < 0 || points[i] == "/" {
		return ""
	}
	mounted := mountPoints(mountinfo, 4)
	if len(mounted) == 0 || slices.Contains(mounted, points[i]) { // without /proc nothing is known
		return ""
	}
	return points[i]
}

// mountPoints reads the mount points in a table of file systems, which are in one column.
func mountPoints(table string, column int) (points []string) {
	data, err := os.ReadFile(table)
	if err != nil { // containers have none
		return nil
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > column && !strings.HasPrefix(fields[0], "#") && strings.HasPrefix(fields[column], "/") { // swap space has none
			points = append(points, filepath.Clean(unescape.Replace(fields[column])))
		}
	}
	return points
}

// unescape undoes what stands for white space in these tables.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// realPath is the absolute path without symbolic links of what exists of it.
func realPath(path string) string {
	path, rest := RealDir(path), ""
	for Gone(path) {
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
	return filepath.Join(RealDir(path), rest)
}
