package process

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestFreeThreads: each control group that the process is in may limit its threads.
func TestFreeThreads(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/pids/"
	for name, c := range map[string]struct {
		groups string
		files  map[string]string
		want   int
	}{
		"no limit":    {"0::/jobs/night\n", map[string]string{v2 + "jobs/night/pids.max": "max\n", v2 + "jobs/night/pids.current": "7\n"}, -1},
		"a service":   {"0::/jobs/night\n", map[string]string{v2 + "jobs/night/pids.max": "100\n", v2 + "jobs/night/pids.current": "7\n"}, 93},
		"a slice":     {"0::/jobs/night\n", map[string]string{v2 + "jobs/night/pids.max": "100\n", v2 + "jobs/night/pids.current": "7\n", v2 + "jobs/pids.max": "20\n", v2 + "jobs/pids.current": "21\n"}, 0},
		"a container": {"0::/docker/4711\n", map[string]string{v2 + "pids.max": "100\n", v2 + "pids.current": "7\n"}, 93},
		"version 1":   {"8:pids:/jobs\n4:memory:/\n0::/\n", map[string]string{v1 + "jobs/pids.max": "100\n", v1 + "jobs/pids.current": "7\n", v2 + "jobs/pids.max": "9\n"}, 93},
		"no /proc":    {"", map[string]string{v2 + "pids.max": "100\n", v2 + "pids.current": "7\n"}, 93},
	} {
		c.files["proc/self/cgroup"] = c.groups
		if got := threadsInGroups(rootWith(t, c.files)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestFreeThreadsOfUser: a limit of the user's processes holds for everybody but root.
func TestFreeThreadsOfUser(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &before); err != nil {
		t.Fatal(err)
	}
	limited := before
	limited.Cur = min(before.Cur, 5000)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limited); err != nil {
		t.Fatal(err)
	}
	free, ofRoot := threadsOfUser(4711), threadsOfUser(0)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &before); err != nil {
		t.Fatal(err)
	}
	if free <= 0 || free >= int(limited.Cur) || ofRoot != -1 {
		t.Errorf("%d threads are free of %d, and %d for root", free, limited.Cur, ofRoot)
	}
}
