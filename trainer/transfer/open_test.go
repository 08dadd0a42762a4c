package transfer

import (
	"log/slog"
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
