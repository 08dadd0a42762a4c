package process

import (
	"math"

	"golang.org/x/sys/unix"
)

// FreeThreads returns how many more threads the process can have, according to its control groups
// (pids.max) and the limit of its user (`ulimit -u`), which the user's other processes share; -1:
// unknown. If Go's runtime cannot create a thread that it needs, it ends the program.
func FreeThreads() int {
	free, ofUser := threadsInGroups("/"), threadsOfUser(unix.Getuid())
	if free < 0 || ofUser >= 0 && ofUser < free {
		return ofUser
	}
	return free
}

// threadsOfUser is FreeThreads according to the limit of the user; root has none.
func threadsOfUser(user int) int {
	var limit unix.Rlimit
	if user == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || limit.Cur > math.MaxInt32 {
		return -1
	}
	has, err := Fields("status")
	if err != nil {
		return -1
	}
	return max(0, int(limit.Cur)-int(has["Threads"]))
}

// threadsInGroups is FreeThreads according to the control groups under root.
func threadsInGroups(root string) int {
	free := -1
	for _, g := range controlGroups(root, "pids") {
		limit, used := g.number("pids.max", ""), g.number("pids.current", "")
		if limit >= 0 && used >= 0 && (free < 0 || int(limit-used) < free) {
			free = int(max(0, limit-used))
		}
	}
	return free
}
