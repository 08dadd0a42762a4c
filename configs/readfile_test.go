package configs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestFilesThatAreNoJobs: what is no job file is told so at once, however long it is.
func TestFilesThatAreNoJobs(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("data.tsv", strings.Repeat("1\t2\t3\n", maxFileBytes/6+1))
	write("nul", "data:\x00")
	write("gzip", "\x1f\x8b\x08\x00\xff")
	if err := os.Truncate(path("data.tsv"), 1<<40); err != nil { // all but the beginning is a hole
		t.Log(err)
	}
	if err := syscall.Mkfifo(path("fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
		file       bool // it cannot be read; else it is a fault of what is in it
	}{
		{path("data.tsv"), "longer than a job file may be", false},
		{path("nul"), "not UTF-8 text", false},
		{path("gzip"), "not UTF-8 text", false},
		{dir, "is a directory", true},
		{path("fifo"), "is a pipe", true},
		{"/dev/zero", "is a device", true},
		{path("nosuch"), "no such file", true},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Load(c.path, LoadOptions{})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
		var failed *fs.PathError
		if errors.As(err, &failed) != c.file {
			t.Errorf("%s: %T", c.path, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*maxFileBytes {
			t.Errorf("%s: %d bytes allocated", c.path, grown)
		}
	}
}
