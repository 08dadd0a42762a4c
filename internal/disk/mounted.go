package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Fstab is the table of what is to be mounted on this machine. Tests set it.
var Fstab = "/etc/fstab"

// mountinfo is the table of what is mounted.
var mountinfo = "/proc/self/mountinfo"

// CheckMounted fails, as if a device were missing, if a path is on a file system that is listed in
// /etc/fstab but not mounted. Files written there would fill the disk below the mount point and
// vanish once the file system is mounted, and files missing there may be on that file system.
func CheckMounted(path string) error {
	if at := unmounted(path); at != "" {
		return fmt.Errorf("%w: the file system of %s, which is in /etc/fstab, is not mounted; mount it", unix.ENODEV, at)
	}
	return nil
}

// unmounted returns the innermost mount point that contains a path, if /etc/fstab lists it and
// nothing is mounted there; otherwise "".
func unmounted(path string) string {
	points := mountPoints(Fstab, 1)
	if len(points) == 0 {
		return ""
	}
	path = realPath(path)
	i := Innermost(points, path)
	if i < 0 || points[i] == "/" {
		return ""
	}
	mounted := mountPoints(mountinfo, 4)
	if len(mounted) == 0 { // without /proc nothing is known
		return ""
	}
	if at := Innermost(mounted, path); at >= 0 && len(mounted[at]) >= len(points[i]) { // there, or farther in, where only somebody's script mounts it
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

// realPath returns the absolute path with the symbolic links in its existing part resolved.
// Dangling links, whose target may be on a file system that is not mounted, are followed too.
func realPath(path string) string {
	path, rest := RealDir(path), ""
	for range 255 { // links may lead to each other
		if to, err := os.Readlink(path); err == nil {
			if !filepath.IsAbs(to) {
				to = filepath.Join(RealDir(filepath.Dir(path)), to)
			}
			path = RealDir(to)
		} else if Gone(path) {
			path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
		} else {
			break
		}
	}
	return filepath.Join(RealDir(path), rest)
}
