package configs

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestShippedJobFilesLoad(t *testing.T) {
	paths, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"criteo", "avazu-csv", "movielens-csv", "libsvm", "parquet", "hdfs-nightly", "demo"} {
		if !slices.Contains(paths, want+".yaml") {
			t.Errorf("no %s.yaml", want)
		}
	}
	for _, path := range paths {
		set := func(name string) (string, bool) { return "/" + name, true }
		for _, env := range []func(string) (string, bool){noEnv, set} {
			j, err := Load(path, LoadOptions{Date: "2026-11-20", Env: env})
			if err != nil {
				t.Error(err)
				continue
			}
			checkRoundTrip(t, j)
		}
	}
}

func TestNightlyPaths(t *testing.T) {
	j, err := Load("hdfs-nightly.yaml", LoadOptions{Date: "2026-03-01", Env: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ have, want string }{
		{j.Name, "nightly-2026-03-01"},
		{j.Data.Train[0], "hdfs://clicks/logs/2026/02/28/*/part-*.gz"},
		{j.Data.Eval[1], "hdfs://clicks/logs/2026/03/01/01/part-*.gz"},
		{j.Training.WarmStart, WarmStartLatest},
		{j.Output.ModelDir, "/var/lib/aibox/models/ctr"},
		{j.Night(), "2026-03-01"},
		{j.Data.HDFS.ConfDir, "/etc/hadoop/conf"},
	} {
		if c.have != c.want {
			t.Errorf("have %s, want %s", c.have, c.want)
		}
	}
}
