package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
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
	for _, g := range controlGroups(root, "memory") {
		limit, used := number(filepath.Join(g.dir, "memory.max"), ""), number(filepath.Join(g.dir, "memory.stat"), "anon") // what is in use and cannot be dropped
		if g.first {
			limit, used = number(filepath.Join(g.dir, "memory.limit_in_bytes"), ""), number(filepath.Join(g.dir, "memory.stat"), "total_rss")
		}
		if slowed {
			if high := number(filepath.Join(g.dir, "memory.high"), ""); high >= 0 && (limit < 0 || high < limit) {
				limit = high
			}
		}
		if limit >= 0 && used >= 0 && (free < 0 || limit-used < free) {
			free = max(0, limit-used)
		}
	}
	return free
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
