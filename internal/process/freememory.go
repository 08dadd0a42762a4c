package process

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// FreeMemory is how much more memory the process can have, by what Linux says about the
// machine and about the control groups that the process is in, before it is killed or slowed down (systemd's MemoryHigh=); -1: unknown.
func FreeMemory() int64 { return freeMemory("/", true) }

// FreeWithSwap is how much more the process can have before Linux kills it: memory, and what can be swapped out for it; -1: unknown.
func FreeWithSwap() int64 { return freeWithSwap("/") }

func freeWithSwap(root string) int64 {
	free := freeMemory(root, false)
	if free < 0 {
		return free
	}
	return free + max(0, number(filepath.Join(root, "proc/meminfo"), "SwapFree:"))<<10
}

// MostMemory is how much memory the process can have as things are: what it has, and what is free; -1: unknown.
func MostMemory() int64 {
	free := FreeMemory()
	has, err := Fields("status")
	if free < 0 || err != nil {
		return -1
	}
	return free + has["RssAnon"]<<10
}

// freeMemory is FreeMemory by the files under root; not slowed: only what it is killed for counts.
func freeMemory(root string, slowed bool) int64 {
	free := number(filepath.Join(root, "proc/meminfo"), "MemAvailable:")
	if free >= 0 {
		free <<= 10 // the file says kB, by which Linux means KiB
	}
	for _, g := range memoryGroups(root) {
		limit := number(filepath.Join(g.dir, g.limit), "")
		if slowed {
			if high := number(filepath.Join(g.dir, "memory.high"), ""); high >= 0 && (limit < 0 || high < limit) {
				limit = high
			}
		}
		used := number(filepath.Join(g.dir, "memory.stat"), g.used)
		if limit >= 0 && used >= 0 && (free < 0 || limit-used < free) {
			free = max(0, limit-used)
		}
	}
	return free
}

// group is a control group that may limit memory.
type group struct {
	dir         string
	limit, used string // the file of the limit, and the number of memory.stat that says what is in use and cannot be dropped
}

// memoryGroups are the control groups whose limits the process is under: its own, and all
// above it. In a container the path that Linux names may be one that only the machine around it
// has; then the group at the root of the mounted file system is that of the container.
func memoryGroups(root string) []group {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		text = []byte("0::/\n")
	}
	var groups []group
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // number:controllers:path
		if len(parts) < 3 {
			continue
		}
		g := group{limit: "memory.max", used: "anon"}
		mounted := "sys/fs/cgroup"
		switch {
		case parts[1] == "memory": // version 1 of control groups
			g = group{limit: "memory.limit_in_bytes", used: "total_rss"}
			mounted = "sys/fs/cgroup/memory"
		case parts[1] != "":
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			g.dir = filepath.Join(root, mounted, at)
			groups = append(groups, g)
			if at == "/" {
				break
			}
		}
	}
	return groups
}

// number is the number after a name at the beginning of a line of a file, or, without a
// name, at the beginning of the first line; -1: there is none.
func number(file, name string) int64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return -1
	}
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if name != "" {
			if len(fields) == 0 || string(fields[0]) != name {
				continue
			}
			fields = fields[1:]
		}
		if len(fields) == 0 {
			return -1
		}
		n, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil { // "max" means that there is no limit
			return -1
		}
		return n
	}
	return -1
}
