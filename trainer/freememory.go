package trainer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"aibox/internal/humanize"
	"aibox/sparsetable"
)

// copiedShare is how much of a table in memory may be copied while a snapshot of it is
// written: the rows that training pins before they are written. Where 100,000 examples with
// 5 new rows each are trained in a second and 200 MB of the table are written, that is an
// eighth.
const copiedShare = 0.25

// roomInMemory fails if the copies that a snapshot of a table in memory makes might not fit
// into the machine's memory. A table with a limit of its own keeps to that.
func (r *run) roomInMemory() error {
	if r.job.SparseTable.Kind == sparsetable.KindSSD || r.job.SparseTable.MemoryBytes > 0 {
		return nil
	}
	need := int64(copiedShare * float64(r.table.Stats().MemoryBytes))
	if free := freeMemory("/"); free >= 0 && free < need {
		return fmt.Errorf("%s of memory are free, and a snapshot of the table may take %s", humanize.Bytes(free), humanize.Bytes(need))
	}
	return nil
}

// freeMemory is how much more memory the process can have, by what Linux says in its files
// under root about the machine and about the control group; -1: unknown.
func freeMemory(root string) int64 {
	free := number(root, "proc/meminfo", "MemAvailable:")
	if free >= 0 {
		free <<= 10 // kB
	}
	if limit := number(root, "sys/fs/cgroup/memory.max", ""); limit >= 0 {
		if used := number(root, "sys/fs/cgroup/memory.stat", "anon"); used >= 0 && (free < 0 || limit-used < free) {
			free = max(0, limit-used)
		}
	}
	return free
}

// number is the number after a name at the beginning of a line of a file; -1: there is none.
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
