package trainer

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"aibox/configs"
	"aibox/internal/hdfstest"
	"aibox/reader/source"
	"aibox/trainer/generations"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// TestPublishToHDFS publishes nights to a real HDFS while its parts fail, and restores them.
func TestPublishToHDFS(t *testing.T) {
	t.Parallel() // it waits for the cluster most of the time
	if testing.Short() {
		t.Skip("SKIP: starts a cluster; not in short mode")
	}
	cluster := hdfstest.Start(t, hdfstest.Config{DataNodes: 2, Separate: true, Proxied: true})
	limits := []string{"data.hdfs.timeout_ms=60000", "data.hdfs.retry_ms=600000"}
	noRetries := []string{"data.hdfs.timeout_ms=60000", "data.hdfs.retry_ms=0"} // the first failure is final
	ssd := onSSD("sparse_table.dirs=[AT/a, AT/b]")

	t.Run("nights", func(t *testing.T) {
		uri := cluster.URI("/nights")
		home := newMachine(t, "", ssd...)
		for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23"} {
			want := home.night(date)
			m := newMachine(t, uri, append(ssd, limits...)...)
			if got := m.night(date); got.Digest != want.Digest || got.Published == nil {
				t.Errorf("%s: digest %s, want %s; published %+v", date, got.Digest, want.Digest, got.Published)
			}
		}
		if got := cluster.List(t, "/nights/generations"); len(got) != 2 {
			t.Errorf("generations %q", got)
		}
		if got := cluster.List(t, "/nights/pending"); len(got) != 0 {
			t.Errorf("leftovers %q", got)
		}
	})
	t.Run("NameNode restarted", func(t *testing.T) {
		m := newMachine(t, cluster.URI("/restarted"), append(ssd, limits...)...)
		restarted := make(chan error, 1)
		go func() { restarted <- cluster.RestartNameNode() }()
		s := m.night("2026-11-21")
		if err := <-restarted; err != nil {
			t.Fatal(err)
		}
		again(t, m, s)
	})
	t.Run("DataNode killed", func(t *testing.T) {
		m := newMachine(t, cluster.URI("/killed"), append(ssd, limits...)...)
		cluster.KillDataNode(t, 0) // and the NameNode does not know it yet
		s := m.night("2026-11-21")
		cluster.StartDataNode(t, 0)
		cluster.WaitDataNodes(t, 2)
		again(t, m, s)
	})
	t.Run("DataNode killed within an object", func(t *testing.T) {
		m := newMachine(t, cluster.URI("/within"), append(ssd, append(limits, "output.remote_bytes_per_second=64KiB")...)...)
		killed := make(chan int, 1)
		cluster.At(t, hdfstest.ToDataNode, 8<<10, func(node int) {
			killed <- node
			cluster.KillDataNode(t, node)
		})
		s := m.night("2026-11-21")
		m.said("the block is written again without it")
		select {
		case node := <-killed:
			cluster.StartDataNode(t, node)
			cluster.WaitDataNodes(t, 2)
		default:
			t.Fatal("no DataNode was killed: the test shows nothing")
		}
		again(t, m, s)
		if left := cluster.List(t, "/within/pending"); len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
	})
	t.Run("listed", func(t *testing.T) {
		if _, _, err := generations.ListRemote(t.Context(), new(configs.Job), cluster.URI("/nosuch"), quiet.Logger); !errors.Is(err, transfer.ErrAbsent) || !strings.Contains(err.Error(), cluster.URI("/nosuch")) {
			t.Errorf("a directory that does not exist: %v", err)
		}
		cluster.Mkdir(t, "/empty", 0o755)
		if all, _, err := generations.ListRemote(t.Context(), new(configs.Job), cluster.URI("/empty"), quiet.Logger); err != nil || len(all) > 0 {
			t.Errorf("an empty directory: %v, %v", all, err)
		}
	})
	t.Run("verified", func(t *testing.T) { verifyOnHDFS(t, cluster, "/verified", append(ssd, limits...)) })
	t.Run("unreachable", func(t *testing.T) {
		// The model is there all the same, and the next night has it published.
		m := newMachine(t, cluster.URI("/unreachable"), append(ssd, noRetries...)...)
		m.set = append(m.set, `output.remote="hdfs://localhost:1/x"`)
		s := m.night("2026-11-21", `training.warm_start=""`)
		if s.Published != nil || s.NotPublished == "" {
			t.Errorf("published %+v, %q", s.Published, s.NotPublished)
		}
		m.said("the model is committed, but not published")
	})
	t.Run("no permission", func(t *testing.T) {
		cluster.Mkdir(t, "/forbidden", 0o555)
		cluster.Chown(t, "/forbidden", "somebody")
		m := newMachine(t, cluster.URI("/forbidden"), append(ssd, append(noRetries, "data.hdfs.user=other")...)...)
		s := m.night("2026-11-21")
		if !strings.Contains(s.NotPublished, "may not write") {
			t.Errorf("%q", s.NotPublished)
		}
	})
	t.Run("quota exceeded", func(t *testing.T) {
		for what, limits := range map[string][2]int64{"names": {6, -1}, "bytes": {-1, 1}} {
			dir := "/quota-" + what
			cluster.SetQuota(t, dir, limits[0], limits[1])
			m := newMachine(t, cluster.URI(dir), append(ssd, noRetries...)...)
			s := m.night("2026-11-21")
			if !strings.Contains(s.NotPublished, "there is no space left: free some there, or raise the quota") {
				t.Errorf("%s: %q", what, s.NotPublished)
			}
			if got := cluster.List(t, dir); slices.Contains(got, "generations") && len(cluster.List(t, dir+"/generations")) > 0 {
				t.Errorf("%s: there are generations", what)
			}
			// With more room, the next night is published, and nothing is left of the other one.
			cluster.SetQuota(t, dir, -1, -1)
			s = m.night("2026-11-22")
			again(t, m, s)
			if left := cluster.List(t, dir+"/pending"); len(left) > 0 {
				t.Errorf("%s: left over: %q", what, left)
			}
		}
	})
	t.Run("snapshots", func(t *testing.T) {
		// Machines are lost, and others go on, while the NameNode is restarted.
		set := onSSD("pipeline.batches_per_pass=4", "training.epochs=2")
		left := job(t, "deepfm", set...)
		want := outcome(t, left, train(t, left))
		j := job(t, "deepfm", append(append(slices.Clip(set), limits...), everyPass, "snapshots.remote="+cluster.URI("/snapshots"))...)
		restarted := make(chan error, 1)
		for _, at := range []int{3, 5} {
			if !lostAt(t, j, at, true) {
				t.Fatal("there were not so many passes")
			}
			if at == 3 {
				go func() { restarted <- cluster.RestartNameNode() }()
			}
		}
		if err := <-restarted; err != nil {
			t.Fatal(err)
		}
		s := train(t, j)
		if len(s.Resumed) != 2 {
			t.Errorf("two machines were lost; gone on from %+v", s.Resumed)
		}
		got := outcome(t, j, s)
		got.compare(t, &want)
		for _, dir := range []string{"snapshots", "objects", "pending"} {
			if left := cluster.List(t, "/snapshots/"+dir); len(left) > 0 {
				t.Errorf("left over in %s: %q", dir, left)
			}
		}
	})
	t.Run("two jobs", func(t *testing.T) {
		// They publish three nights each to one directory, at the same time.
		var digests [2]string
		var wg sync.WaitGroup
		for i := range digests {
			m := newMachine(t, cluster.URI("/both"), append(ssd, append(limits, fmt.Sprintf("name=job%d", i), fmt.Sprintf("seed=%d", i+1))...)...)
			wg.Go(func() {
				for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23"} {
					s, err := m.train(date)
					if err != nil {
						t.Error(err)
						return
					}
					digests[i] = s.Digest
					if s.Published == nil {
						t.Errorf("job %d: %s", i, s.NotPublished)
					}
				}
			})
		}
		wg.Wait()
		if got := cluster.List(t, "/both/generations"); len(got) != 4 {
			t.Errorf("generations %q", got)
		}
		_, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: cluster.URI("/both"), To: filepath.Join(t.TempDir(), "m"), Options: quiet.transfer()})
		if err == nil || !strings.Contains(err.Error(), "several jobs") {
			t.Error(err)
		}
		for i, want := range digests {
			to := filepath.Join(t.TempDir(), "m")
			if _, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: cluster.URI("/both"), Job: fmt.Sprint("job", i), To: to, Options: quiet.transfer()}); err != nil {
				t.Fatal(err)
			}
			if in, err := inference.Inspect(t.Context(), to, true, testjobs.Quiet); err != nil || in.Digest != want {
				t.Errorf("job %d: %v, want %s: %v", i, in, want, err)
			}
		}
	})
	t.Run("killed upload", func(t *testing.T) {
		// A process was killed while it uploaded an object: its lease is there still.
		m := newMachine(t, cluster.URI("/lease"), append(ssd, limits...)...)
		s := m.night("2026-11-21")
		cluster.OpenForWriting(t, "/lease/objects/.0123456789abcdef-000001.0123456789ab.aibox.tmp", 1000)
		cluster.OpenForWriting(t, "/lease/pending/.0123456789abcdef.json.0123456789ab.aibox.tmp", 1000)
		again(t, m, s)
		if next := m.night("2026-11-22"); next.Published == nil {
			t.Errorf("%q", next.NotPublished)
		}
	})
	t.Run("corrupt replicas", func(t *testing.T) {
		m := newMachine(t, cluster.URI("/corrupt"), append(ssd, limits...)...)
		m.night("2026-11-21")
		s := m.night("2026-11-22")
		objects := cluster.List(t, "/corrupt/objects")
		cluster.CorruptReplica(t, "/corrupt/objects/"+objects[0], 0, 1) // not the byte that is changed below, perhaps in the same object
		again(t, m, s)
		// All replicas of an object of the last night alone are corrupt.
		last := lastObjects(t, m)
		cluster.CorruptAll(t, "/corrupt/objects/"+last[0], 0)
		var log strings.Builder
		out, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: cluster.URI("/corrupt"), To: filepath.Join(t.TempDir(), "m"), Options: transfer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil || out.Generation != 1 || out.Older != 1 || !strings.Contains(log.String(), "the newest older one is restored instead") {
			t.Errorf("%+v, %v\n%s", out, err, &log)
		}
	})
	t.Run("none there", func(t *testing.T) {
		_, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: cluster.URI("/none"), To: t.TempDir(), Options: quiet.transfer()})
		if err == nil || !strings.Contains(err.Error(), "no model there") {
			t.Error(err)
		}
		if err := errors.Join(err); errors.Is(err, source.ErrUnavailable) {
			t.Error(err)
		}
	})
}

// again restores the newest model of a machine's remote directory and fails unless it is the
// one that the summary is about.
func again(t *testing.T, m *machine, s *report.Summary) {
	t.Helper()
	if s.Published == nil {
		t.Fatalf("it is not published: %s\n%s", s.NotPublished, m.log.String())
	}
	uri, _, _ := strings.Cut(s.Published.URI, "@")
	to := filepath.Join(t.TempDir(), "m")
	if _, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, To: to, Dirs: []string{filepath.Join(to, "../x")}, Options: quiet.transfer()}); err != nil {
		t.Fatal(err)
	}
	in, err := inference.Inspect(t.Context(), to, true, testjobs.Quiet)
	if err != nil || in.Digest != s.Digest || len(in.Faults) > 0 {
		t.Errorf("digest %v, want %s: %v", in, s.Digest, err)
	}
}

// lastObjects are the objects that only the newest generation of the machine's remote
// directory has.
func lastObjects(t *testing.T, m *machine) []string {
	t.Helper()
	model, err := modeldir.Open(filepath.Join(m.at, "model"))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	job, _, err := modeltable.SavedJob(model, configs.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sources := jobsource.New(job, quiet.Logger)
	defer sources.Close()
	d, err := transfer.Open(sources, job.Output.Remote, 0, "", quiet.Logger)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := d.Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range all[0].Files {
		for _, p := range f.Parts {
			if strings.HasPrefix(p.Object, all[0].ID) && !slices.Contains(out, p.Object) {
				out = append(out, p.Object)
			}
		}
	}
	return out
}
