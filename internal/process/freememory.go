package process

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// FreeMemory is how much more memory the process can have, by what Linux says about the machine and
// about the control groups that the process is in, before it is killed or slowed down (systemd's
// MemoryHigh=); -1: unknown.
func FreeMemory() int64 { return freeMemory("/", true) }

// FreeWithSwap is how much more the process can have before Linux kills it: memory, and what can be
// swapped out for it; -1: unknown.
func FreeWithSwap() int64 { return freeWithSwap("/") }

func freeWithSwap(root string) int64 {
	free := freeMemory(root, false)
	if free < 0 {
		return free
	}
	swap, most := max(0, number(filepath.Join(root, "proc/meminfo"), "SwapFree:"))<<10, int64(math.MaxInt64)
	for _, g := range controlGroups(root, "memory") {
		if g.first { // the limit is one of memory and swap together
			if limit := g.number("memory.memsw.limit_in_bytes", ""); limit >= 0 {
				most = min(most, max(0, limit-g.used()-g.count("total_swap")))
			}
		} else if limit := g.number("memory.swap.max", ""); limit >= 0 {
			swap = min(swap, max(0, limit-max(0, g.number("memory.swap.current", ""))))
		}
	}
	return min(free+swap, most)
}

// MostMemory is how much memory the process can have as things are: what it has, and what is free;
// -1: unknown.
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
		limit, used := g.number("memory.max", ""), g.used()
		if g.first {
			limit = g.number("memory.limit_in_bytes", "")
		}
		if slowed {
			if high := g.number("memory.high", ""); high >= 0 && (limit < 0 || high < limit) {
				limit = high
			}
		}
		if limit >= 0 && used >= 0 && (free < 0 || limit-used < free) {
			free = max(0, limit-used)
		}
	}
	return free
}

// used is the memory that the processes of a group have and that cannot be dropped: their own, and
// files in memory, as in /dev/shm; -1: unknown.
func (g *controlGroup) used() int64 {
	if g.first {
		return g.number("memory.stat", "total_rss") + g.count("total_shmem")
	}
	return g.number("memory.stat", "anon") + g.count("shmem")
}

// count is a figure of a group's memory, 0 if it has none of that name.
func (g *controlGroup) count(name string) int64 { return max(0, g.number("memory.stat", name)) }

// number is that of a file of a group.
func (g *controlGroup) number(file, name string) int64 {
	return number(filepath.Join(g.dir, file), name)
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
