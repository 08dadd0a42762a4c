package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinkedWorkingDirectory checks that in a directory that the shell has reached through a link,
// a relative path with ".." is resolved by the operating system for the table in the same way as
// for the model.
func TestLinkedWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("disk/jobs", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("disk/jobs", "link"); err != nil {
		t.Fatal(err)
	}
	there := absolute(t, "link")[len("file://"):]
	t.Chdir(there) // sets $PWD, as a shell does
	write(t, "job.yaml", smallJob)
	ok(t, "generate", "job.yaml")
	ok(t, "train", "job.yaml", "--set", "output.model_dir=../model", "--set", "sparse_table={kind: ssd, memory_bytes: 16MiB, dirs: [../ssd]}")
	wantOnly(t, filepath.Dir(there), "disk", "link")
	ok(t, "inspect", "../model")
}
