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
		root := t.TempDir()
		for file, text := range map[string]string{"proc/meminfo": c.meminfo, "sys/fs/cgroup/memory.max": c.limit, "sys/fs/cgroup/memory.stat": c.stat} {
			path := filepath.Join(root, file)
			if text == "" {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := freeMemory(root); got != c.want {
			t.Errorf("%q, limit %q, %q: %d, want %d", c.meminfo, c.limit, c.stat, got, c.want)
		}
	}
}
