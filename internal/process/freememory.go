package process

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// FreeMemory returns how much more memory the process can take before it is killed or slowed down
// (systemd's MemoryHigh=), according to Linux's figures for the machine and the process's control
// groups; -1: unknown.
func FreeMemory() int64 { return freeMemory("/", true) }

// FreeWithSwap returns how much more the process can take before Linux kills it: free memory, plus
// what can be swapped out; -1: unknown.
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

// MostMemory returns how much memory the process can currently have in total: what it has, plus
// what is free; -1: unknown.
func MostMemory() int64 {
	free := FreeMemory()
	has, err := Fields("status")
	if free < 0 || err != nil {
		return -1
	}
	return free + has["RssAnon"]<<10
}

// freeMemory is FreeMemory according to the files under root. Unless slowed is set, only limits
// beyond which the process is killed count.
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

// used returns the memory of a group's processes that cannot be reclaimed: anonymous memory, and
// files in memory, as in /dev/shm; -1: unknown.
func (g *controlGroup) used() int64 {
	if g.first {
		return g.number("memory.stat", "total_rss") + g.count("total_shmem")
	}
	return g.number("memory.stat", "anon") + g.count("shmem")
}

// count returns a named figure of a group's memory statistics, 0 if there is none of that name.
func (g *controlGroup) count(name string) int64 { return max(0, g.number("memory.stat", name)) }

// number reads a number from a file of a group.
func (g *controlGroup) number(file, name string) int64 {
	return number(filepath.Join(g.dir, file), name)
}

// number returns the number after a name at the beginning of a line of a file, or, without a name,
// at the beginning of the first line; -1: there is none.
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
