package process

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFreeMemory reads what Linux says, with and without a control group.
func TestFreeMemory(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemFree:        1000 kB\nMemAvailable:   2000 kB\n"
	const stat = "file 5\nanon 900000\nanon_thp 3\n"
	for _, c := range []struct {
		meminfo, limit, stat string
		want                 int64
	}{
		{"", "", "", -1},
		{"nonsense\n\nMemAvailable:\n", "", "", -1},
		{meminfo, "", "", 2000 << 10},
		{meminfo, "max\n", stat, 2000 << 10},
		{meminfo, "1000000\n", stat, 100_000},
		{meminfo, "800000\n", stat, 0},
		{meminfo, "9000000000\n", stat, 2000 << 10},
		{"", "1000000\n", stat, 100_000},
		{meminfo, "1000000\n", "", 2000 << 10},
	} {
		if got := freeMemory(rootWith(t, map[string]string{"proc/meminfo": c.meminfo, "sys/fs/cgroup/memory.max": c.limit, "sys/fs/cgroup/memory.stat": c.stat}), true); got != c.want {
			t.Errorf("%q, limit %q, %q: %d, want %d", c.meminfo, c.limit, c.stat, got, c.want)
		}
	}
}

// TestFreeWithSwap: what is free of the swap comes to what is free of the memory.
func TestFreeWithSwap(t *testing.T) {
	for meminfo, want := range map[string]int64{
		"":                        -1,
		"MemAvailable: 2000 kB\n": 2000 << 10,
		"MemAvailable: 2000 kB\nSwapTotal: 9000 kB\nSwapFree: 500 kB\n": 2500 << 10,
	} {
		if got := freeWithSwap(rootWith(t, map[string]string{"proc/meminfo": meminfo})); got != want {
			t.Errorf("%q: %d, want %d", meminfo, got, want)
		}
	}
}

// TestFreeMemoryOfGroups: the group of a service lies below the root of the file system, and a limit
// of any group above it holds, too. A container may have a path that it cannot see.
func TestFreeMemoryOfGroups(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	const hybrid = "9:name=systemd:/jobs/night\n4:cpu,cpuacct:/\n3:memory:/jobs/night\n0::/other\n"
	for name, c := range map[string]struct {
		groups string
		files  map[string]string
		want   int64
	}{
		"a service": {"0::/jobs/a night\n", map[string]string{
			v2 + "jobs/a night/memory.max": "1000000\n", v2 + "jobs/a night/memory.stat": "anon 300000\n"}, 700_000},
		"a slice": {"0::/jobs/night\n", map[string]string{
			v2 + "jobs/night/memory.max": "max\n", v2 + "jobs/night/memory.stat": "anon 300000\n",
			v2 + "jobs/memory.max": "1000000\n", v2 + "jobs/memory.stat": "anon 950000\n"}, 50_000},
		"a service that is slowed down": {"0::/jobs/night\n", map[string]string{
			v2 + "jobs/night/memory.max": "1000000\n", v2 + "jobs/night/memory.high": "400000\n", v2 + "jobs/night/memory.stat": "anon 300000\n"}, 100_000},
		"a container": {"0::/docker/4711\n", map[string]string{
			v2 + "memory.max": "1000000\n", v2 + "memory.stat": "anon 300000\n"}, 700_000},
		"a group beside": {"0::/jobs/night\n", map[string]string{
			v2 + "jobs/other/memory.max": "1000000\n", v2 + "jobs/other/memory.stat": "anon 300000\n"}, 2000 << 10},
		"version 1": {hybrid, map[string]string{
			v1 + "jobs/night/memory.limit_in_bytes": "1000000\n", v1 + "jobs/night/memory.stat": "rss 1\ntotal_rss 300000\n",
			v1 + "memory.limit_in_bytes": "9223372036854771712\n", v1 + "memory.stat": "rss 1\ntotal_rss 900000\n"}, 700_000},
	} {
		c.files["proc/self/cgroup"], c.files["proc/meminfo"] = c.groups, "MemAvailable:   2000 kB\n"
		if got := freeMemory(rootWith(t, c.files), true); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestFreeWithSwapInGroups: what only slows a process down does not end its memory, and a group may
// have no swap, or less than the machine.
func TestFreeWithSwapInGroups(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	second := func(swap, current string) map[string]string {
		return map[string]string{v2 + "memory.max": "1000000\n", v2 + "memory.high": "400000\n", v2 + "memory.stat": "anon 200000\nshmem 100000\n",
			v2 + "memory.swap.max": swap, v2 + "memory.swap.current": current}
	}
	first := func(limit string) map[string]string {
		return map[string]string{"proc/self/cgroup": "3:memory:/\n", v1 + "memory.limit_in_bytes": "1000000\n", v1 + "memory.memsw.limit_in_bytes": limit,
			v1 + "memory.stat": "rss 1\nswap 1\ntotal_rss 250000\ntotal_shmem 50000\ntotal_swap 10000\n"}
	}
	for name, c := range map[string]struct {
		swapFree string // kB
		files    map[string]string
		want     int64
	}{
		"slowed down":                   {"0", second("", ""), 700_000},
		"swap without a limit":          {"1000", second("max\n", "0\n"), 700_000 + 1000<<10},
		"no swap for the group":         {"1000", second("0\n", "0\n"), 700_000},
		"some swap for the group":       {"1000", second("500000\n", "100000\n"), 1_100_000},
		"more than the machine has":     {"100", second("500000\n", "100000\n"), 700_000 + 100<<10},
		"version 1":                     {"1000", first(""), 700_000 + 1000<<10},
		"version 1, without a limit":    {"1000", first("9223372036854771712\n"), 700_000 + 1000<<10},
		"version 1, no swap":            {"1000", first("1000000\n"), 690_000},
		"version 1, less than there is": {"1000", first("1100000\n"), 790_000},
	} {
		c.files["proc/meminfo"] = "MemAvailable: 2000 kB\nSwapFree: " + c.swapFree + " kB\n"
		if got := freeWithSwap(rootWith(t, c.files)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// rootWith is a directory with files of these texts, without those that have none.
func rootWith(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for file, text := range files {
		if text == "" {
			continue
		}
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
