package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestHDFSWithoutJobFile checks that commands that use HDFS without a job file take data.hdfs from
// --set, and that commands without a URI refuse it. The error about a directory without Hadoop's
// files shows that the setting takes effect.
func TestHDFSWithoutJobFile(t *testing.T) {
	inNightlyJob(t, "sparse_table={kind: ssd, memory_bytes: 16MiB}")
	conf := t.TempDir()
	const uri = "hdfs://nn:8020/x"
	ok(t, "table", "export", "model", "--to", "rows.parquet")
	ok(t, "table", "import", "bare", "--from", "rows.parquet")
	commands := [][]string{
		{"inspect", uri}, {"inspect", uri + "@3"}, {"generations", uri},
		{"restore", "--from", uri, "--to", "new"},
		{"convert", "--from", uri + "/a.csv", "--to", "a.parquet"},
		{"table", "export", "bare", "--to", uri + "/rows.parquet"},
		{"table", "export", "model", "--to", uri + "/rows.parquet"},
		{"table", "import", "other", "--from", uri + "/rows.parquet"},
	}
	for _, args := range commands {
		o := aibox(append(args, "--set", "data.hdfs.conf_dir="+conf)...)
		if !strings.Contains(o.stderr, conf+" holds neither core-site.xml nor hdfs-site.xml") {
			t.Errorf("%v: exit %d\n%s", args, o.code, o.stderr)
		}
		for _, wrong := range []string{"data.hdfs.conf_dri=" + conf, "data.hdfs.kerberos_keytab=a", "seed=2"} {
			if o := aibox(append(args, "--set", wrong)...); o.code != exitUsage {
				t.Errorf("%v --set %s: exit %d\n%s", args, wrong, o.code, o.stderr)
			}
		}
	}
	for _, args := range [][]string{{"inspect", "model"}, {"generations", filepath.Dir(conf)}, {"table", "stats", "bare"}, {"table", "export", "bare", "--to", "again.parquet"}} {
		if o := aibox(append(args, "--set", "data.hdfs.conf_dir="+conf)...); o.code != exitUsage || !strings.Contains(o.stderr, "only timezone=NAME can be set") {
			t.Errorf("%v: exit %d\n%s", args, o.code, o.stderr)
		}
	}
}

// TestExportReachesHDFSAsTheModelsJob checks that the table of a model is exported with data.hdfs
// of the model's job.
func TestExportReachesHDFSAsTheModelsJob(t *testing.T) {
	inNightlyJob(t, "sparse_table={kind: ssd, memory_bytes: 16MiB}", "data.hdfs.conf_dir=/nowhere/conf")
	o := aibox("table", "export", "model", "--to", "hdfs://nn:8020/rows.parquet")
	if !strings.Contains(o.stderr, "/nowhere/conf") {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
}
