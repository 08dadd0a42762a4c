package trainer

import (
	"bytes"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/hdfstest"
	"aibox/trainer/generations"
	"aibox/trainer/jobsource"
	"aibox/trainer/transfer"
)

// verifyOnHDFS damages what a machine has published in ways in which HDFS does: all replicas of a
// block are corrupt, a file is missing, and a file has other bytes, of which HDFS knows nothing. Each
// fault is found and repaired.
func verifyOnHDFS(t *testing.T, cluster *hdfstest.Cluster, dir string, set []string) {
	uri := cluster.URI(dir)
	m := newMachine(t, uri, set...)
	s := m.night("2026-11-21")
	verified := func(faults int) *generations.Verified {
		t.Helper()
		v, err := generations.VerifyRemote(t.Context(), new(configs.Job), uri, 0, quiet.Logger)
		if err != nil || len(v.Faults) != faults || (v.Err() != nil) != (faults > 0) {
			t.Fatalf("%+v, %v, want %d faults", v, err, faults)
		}
		return v
	}
	verified(0)
	objects := cluster.List(t, path.Join(dir, "objects"))
	for i := range objects {
		objects[i] = path.Join("objects", path.Base(objects[i]))
	}
	sources := jobsource.New(new(configs.Job), quiet.Logger)
	defer sources.Close()
	store, err := sources.Directory(uri)
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.List(t.Context(), "objects")
	if err != nil {
		t.Fatal(err)
	}
	cluster.CorruptAll(t, path.Join(dir, objects[0]), 0)
	if err := store.Remove(t.Context(), objects[1]); err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if path.Base(objects[2]) == e.Name {
			if err := store.Put(t.Context(), objects[2], bytes.NewReader(make([]byte, e.Size)), e.Size, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := verified(3)
	for i, says := range []string{"", "missing", "SHA-256"} {
		found := false
		for _, f := range v.Faults {
			found = found || strings.HasSuffix(f.URI, objects[i]) && strings.Contains(f.Reason, says) && len(f.NeededBy) == 1 && f.NeededBy[0].Generation == 1
		}
		if !found {
			t.Errorf("%s is not among %+v", objects[i], v.Faults)
		}
	}
	out, err := transfer.Publish(t.Context(), transfer.PublishOptions{Model: filepath.Join(m.at, "model"), Verify: true, Options: quiet.transfer()})
	if err != nil || !out.Already || out.MendedBytes == 0 || out.Generation != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	verified(0)
	again(t, m, s)
}
