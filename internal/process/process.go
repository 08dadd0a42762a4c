// Package process says what this process takes of the machine: memory and processor time,
// as Linux counts them.
package process

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Memory is the resident set of the process, in bytes.
type Memory struct{ Now, Peak int64 }

// ReadMemory returns the current and the peak resident set. getrusage is not usable for the peak,
// because its figure starts with the resident set of the parent process.
func ReadMemory() (Memory, error) {
	f, err := Fields("status")
	return Memory{Now: f["VmRSS"] << 10, Peak: f["VmHWM"] << 10}, err // the file counts kB, by which Linux means KiB
}

// MemoryOrZero is ReadMemory for reports: it returns zeros where the system does not tell.
func MemoryOrZero() Memory {
	m, err := ReadMemory()
	if err != nil {
		return Memory{}
	}
	return m
}

// ResetPeak makes the system measure the peak of the resident set from now on; see
// clear_refs in proc(5).
func ResetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// ProcessorTime is the time that all threads of the process have spent on cores so far.
func ProcessorTime() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// ProcessorTimeOrZero is ProcessorTime for reports: it returns 0 where the system does not tell.
func ProcessorTimeOrZero() time.Duration {
	used, err := ProcessorTime()
	if err != nil {
		return 0
	}
	return used
}

// AddressSpaceLimit is how many bytes of addresses the process may use (`ulimit -v`), or
// 0 if nothing limits them.
func AddressSpaceLimit() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur > math.MaxInt64 {
		return 0
	}
	return int64(limit.Cur)
}

// Fields returns the numbers of a file of /proc/self whose lines are "name: number …".
func Fields(file string) (map[string]int64, error) {
	text, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return nil, err
	}
	fields := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if words := strings.Fields(rest); len(words) > 0 {
			if n, err := strconv.ParseInt(words[0], 10, 64); err == nil {
				fields[name] = n
			}
		}
	}
	return fields, nil
}
