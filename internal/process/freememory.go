package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// FreeMemory is how much more memory the process can have, by what Linux says about the
// machine and about the control group; -1: unknown.
func FreeMemory() int64 { return freeMemory("/") }

// freeMemory is FreeMemory by the files under root.
func freeMemory(root string) int64 {
	free := number(root, "proc/meminfo", "MemAvailable:")
	if free >= 0 {
		free <<= 10 // the file says kB, by which Linux means KiB
	}
	if limit := number(root, "sys/fs/cgroup/memory.max", ""); limit >= 0 {
		if used := number(root, "sys/fs/cgroup/memory.stat", "anon"); used >= 0 && (free < 0 || limit-used < free) {
			free = max(0, limit-used)
		}
	}
	return free
}

// number is the number after a name at the beginning of a line of a file, or, without a
// name, at the beginning of the first line; -1: there is none.
func number(root, file, name string) int64 {
	data, err := os.ReadFile(filepath.Join(root, file))
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
