package transfer

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/jobsource"
)

var silent = slog.New(slog.DiscardHandler)

// TestOnlyMountedDirectoriesMustExist: a directory of HDFS need not, since nothing is mounted there.
func TestOnlyMountedDirectoriesMustExist(t *testing.T) {
	sources := jobsource.New(new(configs.Job), silent)
	defer sources.Close()
	for uri, path := range map[string]string{"hdfs://localhost:1/x": "", "file:///x/y": "/x/y", "/x/y": "/x/y", "s3://x": ""} {
		if got := MountedPath(sources, uri); got != path {
			t.Errorf("%s: %q, want %q", uri, got, path)
		}
	}
}

// TestFileIsNoRemoteDirectory: what is a file is not taken for a directory without models, with
// which a job would begin with a new one.
func TestFileIsNoRemoteDirectory(t *testing.T) {
	sources := jobsource.New(new(configs.Job), silent)
	defer sources.Close()
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPresent(sources, file, 0, "restoring", silent); err == nil || !strings.Contains(err.Error(), file+": it is a file") {
		t.Errorf("%v", err)
	}
}
