package trainer

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/generations"
	"aibox/trainer/remotesnapshots"
)

// lost deletes everything that a job has on its machine.
func lost(t *testing.T, j *configs.Job) {
	t.Helper()
	for _, dir := range append([]string{j.Output.ModelDir, j.Output.Metrics}, j.SparseTable.Dirs...) {
		if dir != "" {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lostAt trains j, kills it after pass number at, deletes what it has on its machine, and
// reports whether it came so far. waits has the snapshots before be in the remote directory.
func lostAt(t *testing.T, j *configs.Job, at int, waits bool) bool {
	t.Helper()
	opts := quiet
	passes := 0
	opts.afterPass = func(ctx context.Context, r *run) error {
		if waits {
			r.snapshots.wait()
			if !r.snapshots.uploads.Finish(ctx) {
				t.Error("a snapshot was not uploaded")
			}
		}
		if passes++; passes < at {
			return nil
		}
		return errCrash
	}
	_, err := Train(t.Context(), j, opts)
	if err == nil {
		return false
	}
	if !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	lost(t, j)
	return true
}

// remoteFiles are the files in a remote directory.
func remoteFiles(t *testing.T, dir string) (names []string, bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(at string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			names, bytes = append(names, at), bytes+info.Size()
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return names, bytes
}

// TestResumeOnAnotherMachine simulates several losses of the machine that trains a job, with all
// that is on its disks. Each new machine resumes from what the one before has uploaded, and the
// last one must make the model and the reports of an undisturbed machine. In the end nothing may be
// left in the remote directory.
func TestResumeOnAnotherMachine(t *testing.T) {
	for name, set := range resumeSettings(t, "ssd and stopping", "bad rows", "directories") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := job(t, "deepfm", append(slices.Clip(set), "snapshots.every=none")...)
			want := outcome(t, left, train(t, left))
			rng := testseed.Rand(t)
			dir := t.TempDir()
			j := job(t, "deepfm", append(slices.Clip(set), everyPass, "snapshots.remote="+dir)...)
			losses, saved := 0, false
			for losses < 6 {
				at, waits := 2+rng.IntN(8), losses == 0 || rng.IntN(2) == 0
				if !lostAt(t, j, at, waits) {
					break
				}
				losses++
				saved = saved || waits
			}
			if losses == 6 {
				train(t, j)
			}
			summary := readSummary(t, j)
			if saved && len(summary.Resumed) == 0 {
				t.Errorf("%d machines were lost, and none went on from the remote directory", losses)
			}
			got := outcome(t, j, summary)
			got.compare(t, &want)
			checkOneSnapshot(t, j)
			if names, _ := remoteFiles(t, dir); len(names) > 0 {
				t.Errorf("left in the remote directory: %v", names)
			}
		})
	}
}

// TestRemoteSnapshotDamaged checks that a snapshot in the remote directory with a missing or wrong
// file is not used, and that the one before it is.
func TestRemoteSnapshotDamaged(t *testing.T) {
	set := onSSD("pipeline.batches_per_pass=4", "training.epochs=2")
	left := job(t, "deepfm", set...)
	want := outcome(t, left, train(t, left))
	for _, what := range []string{"missing", "changed", "all"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			j := job(t, "deepfm", append(slices.Clip(set), everyPass, "snapshots.remote="+dir)...)
			if !lostAt(t, j, 6, true) {
				t.Fatal("there were not so many passes")
			}
			damageRemote(t, dir, what)
			var log bytes.Buffer
			opts := quiet
			opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s, err := Train(t.Context(), j, opts)
			if err != nil {
				t.Fatal(err)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
			if !strings.Contains(log.String(), "is damaged") || (len(s.Resumed) == 0) != (what == "all") {
				t.Errorf("went on at %+v:\n%s", s.Resumed, log.String())
			}
		})
	}
}

// damageRemote damages an object that only the newest snapshot has, or all objects.
func damageRemote(t *testing.T, dir, what string) {
	t.Helper()
	names, _ := remoteFiles(t, filepath.Join(dir, "objects"))
	snapshots, _ := remoteFiles(t, filepath.Join(dir, "snapshots"))
	slices.Sort(snapshots)
	_, id, _ := strings.Cut(strings.TrimSuffix(filepath.Base(snapshots[len(snapshots)-1]), ".json"), "-")
	done := 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 || what != "all" && !strings.Contains(filepath.Base(name), id) {
			continue
		}
		if done++; what == "missing" {
			err = os.Remove(name)
		} else {
			data[len(data)/2] ^= 1
			err = os.WriteFile(name, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if done == 0 {
		t.Fatal("the newest snapshot has no object of its own")
	}
}

// mounted is a new directory, as of a file system that is mounted, that has the directory remote.
func mounted(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mounted")
	if err := os.MkdirAll(filepath.Join(dir, "remote"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// blocked puts a link to itself into the place of a directory, which then cannot be read, and
// returns what puts the directory back.
func blocked(t *testing.T, dir string) (back func()) {
	t.Helper()
	aside := dir + ".aside"
	_ = os.Rename(dir, aside) // it may not be there yet
	if err := os.Symlink(dir, dir); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.Remove(dir), os.Rename(aside, dir)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRemoteSnapshotsUnreadable checks that training does not silently start over if it cannot be
// known whether snapshots.remote has a snapshot. The run ends with an error, and is resumed when
// the directory can be read. --fresh starts over.
func TestRemoteSnapshotsUnreadable(t *testing.T) {
	left := job(t, "deepfm", everyPass)
	want := outcome(t, left, train(t, left))
	for _, fresh := range []bool{false, true} {
		dir := mounted(t)
		j := job(t, "deepfm", everyPass, "snapshots.remote="+dir+"/remote")
		if !lostAt(t, j, 4, true) {
			t.Fatal("there were not so many passes")
		}
		back := blocked(t, dir)
		opts := quiet
		if !fresh {
			_, err := Train(t.Context(), j, opts)
			if err == nil || errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "--fresh") || !strings.Contains(err.Error(), dir) {
				t.Fatalf("training began: %v", err)
			}
			back()
		}
		opts.Fresh = fresh
		s, err := Train(t.Context(), j, opts)
		if err != nil || (len(s.Resumed) == 0) != fresh {
			t.Fatalf("fresh: %v, went on: %v", fresh, err)
		}
		got := outcome(t, j, s)
		got.compare(t, &want)
	}
}

// TestRemoteSnapshotsFail checks that training continues if snapshots cannot be uploaded, and that
// the log and the summary say why they cannot.
func TestRemoteSnapshotsFail(t *testing.T) {
	left := job(t, "deepfm", everyPass)
	want := outcome(t, left, train(t, left))
	dir := mounted(t)
	j := job(t, "deepfm", everyPass, "snapshots.remote="+dir+"/remote")
	var log bytes.Buffer
	opts := quiet
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	passes := 0
	opts.afterPass = func(ctx context.Context, r *run) error {
		if passes == 0 {
			r.snapshots.uploads.Finish(ctx)
			blocked(t, dir)
		}
		r.snapshots.wait()
		if passes++; passes == 3 && r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was uploaded")
		}
		return nil
	}
	s, err := Train(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
	if r := s.Snapshots.Remote; r == nil || r.Uploaded > 1 || r.Failed == 0 || r.Error == "" {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(log.String(), "a snapshot could not be uploaded") {
		t.Errorf("the log does not say so:\n%s", log.String())
	}
}

// TestLastSnapshotStaysHere checks that a run that is stopped and cannot upload its last snapshot
// says so, and why.
func TestLastSnapshotStaysHere(t *testing.T) {
	dir := mounted(t)
	j := job(t, "fm", everyPass, "snapshots.remote="+dir+"/remote")
	var log bytes.Buffer
	opts := quiet
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	ctx, stop := context.WithCancel(t.Context())
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.uploads.Finish(ctx)
		blocked(t, dir)
		stop()
		return nil
	}
	if _, err := Train(ctx, j, opts); err == nil {
		t.Fatal("it was not stopped")
	}
	_, after, said := strings.Cut(log.String(), "it is only on this machine")
	if reason := strings.SplitAfter(after, "\n")[0]; !said || !strings.Contains(reason, dir) || !strings.Contains(reason, "reason=\"") {
		t.Errorf("it says:\n%s", log.String())
	}
}

// TestRemoteSnapshotOfAnotherJob checks that a snapshot of a job that differs, or of other data, is
// neither used nor removed, and that --fresh uses none.
func TestRemoteSnapshotOfAnotherJob(t *testing.T) {
	dir := t.TempDir()
	set := []string{everyPass, "snapshots.remote=" + dir}
	j := job(t, "deepfm", set...)
	if !lostAt(t, j, 3, true) {
		t.Fatal("there were not so many passes")
	}
	listed, total, err := generations.ListRemote(t.Context(), new(configs.Job), "file://"+dir, quiet.Logger)
	if err != nil || len(listed) != remotesnapshots.Keep || listed[0].Generation != 0 || listed[0].State != generations.Resumable || listed[0].Job != j.PlainName() ||
		listed[0].Steps <= listed[1].Steps || listed[0].OwnBytes <= 0 || total < listed[0].Bytes {
		t.Errorf("%+v, %d bytes in all, %v", listed, total, err)
	}
	before, _ := remoteFiles(t, filepath.Join(dir, "snapshots"))
	other := job(t, "deepfm", append(slices.Clip(set), "seed=77")...)
	if s := train(t, other); len(s.Resumed) > 0 {
		t.Errorf("another job went on at %+v", s.Resumed)
	}
	if after, _ := remoteFiles(t, filepath.Join(dir, "snapshots")); !slices.Equal(before, after) {
		t.Errorf("the snapshots were %v, are %v", before, after)
	}
	opts := quiet
	opts.Fresh = true
	if s, err := Train(t.Context(), j, opts); err != nil || len(s.Resumed) > 0 {
		t.Errorf("--fresh went on: %v", err)
	}
	if names, _ := remoteFiles(t, dir); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// TestRemoteSnapshotBytes checks that the uploads of all snapshots of a run are at most 1.2 times
// as large as what the snapshots and the table have written on the machine.
func TestRemoteSnapshotBytes(t *testing.T) {
	j := job(t, "deepfm", onSSD("training.accept_diverged=true", "training.epochs=2", "sparse_table.memory_bytes=8MiB", "model.embedding_dim=32", "pipeline.batches_per_pass=4", everyPass, "snapshots.remote="+t.TempDir())...)
	opts := quiet
	var table sparsetable.Stats
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		if !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		table = r.table.Stats()
		return nil
	}
	s, err := Train(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	up := s.Snapshots.Remote
	changed := table.FlushedBytes + table.CompactedBytes + table.ImportedBytes + s.Snapshots.Bytes
	t.Logf("%d of %d snapshots, %d bytes uploaded, %d changed", up.Uploaded, s.Snapshots.Taken, up.UploadedBytes, changed)
	if up.Uploaded < 10 || up.UploadedBytes == 0 || float64(up.UploadedBytes) > 1.2*float64(changed) {
		t.Errorf("%+v, but %d bytes have changed", up, changed)
	}
}

// TestRemoteSnapshotMetricsElsewhere checks that a metrics file outside of the model directory is
// transferred to the other machine, too.
func TestRemoteSnapshotMetricsElsewhere(t *testing.T) {
	set := []string{"output.log_every=2", everyPass}
	metricsOf := func(j *configs.Job) string {
		data, err := os.ReadFile(j.Output.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	left := job(t, "deepfm", append(slices.Clip(set), "output.metrics=MODEL-metrics.jsonl")...)
	train(t, left)
	j := job(t, "deepfm", append(slices.Clip(set), "output.metrics=MODEL-metrics.jsonl", "snapshots.remote="+t.TempDir())...)
	if !lostAt(t, j, 4, true) {
		t.Fatal("there were not so many passes")
	}
	if s := train(t, j); len(s.Resumed) != 1 {
		t.Errorf("went on at %+v", s.Resumed)
	}
	if have, want := metricsOf(j), metricsOf(left); have != want {
		t.Errorf("the lines are\n%s\nwant\n%s", have, want)
	}
}

// TestOneRemoteDirectory checks that snapshots.remote and output.remote may be one directory, which
// in the end has the model and no snapshot.
func TestOneRemoteDirectory(t *testing.T) {
	dir := "file://" + mounted(t) + "/remote"
	j := job(t, "lr", everyPass, "snapshots.remote="+dir, "output.remote="+dir+"/")
	if !lostAt(t, j, 3, true) {
		t.Fatal("there were not so many passes")
	}
	s := train(t, j)
	if len(s.Resumed) != 1 || s.Published == nil {
		t.Errorf("went on at %+v, published %+v", s.Resumed, s.Published)
	}
	if left, _ := remoteFiles(t, strings.TrimPrefix(dir, "file://")+"/snapshots"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRemoteSnapshotsOfEarlierNights checks nights with model directories of their own. The next
// night that can use snapshots.remote removes the snapshots of the runs whose models came before
// its own, which these could not remove. Those of a run that has made none of these models stay.
func TestRemoteSnapshotsOfEarlierNights(t *testing.T) {
	dir := t.TempDir()
	m := newMachine(t, "", everyPass, "snapshots.remote="+dir, "output.model_dir=AT/models/{{date}}", "training.max_examples=640")
	night := func(date string, afterPass func(context.Context, *run) error, set ...string) error {
		t.Helper()
		j, err := m.job(date, set...)
		if err != nil {
			t.Fatal(err)
		}
		opts := quiet
		opts.afterPass = afterPass
		_, err = Train(t.Context(), j, opts)
		return err
	}
	kept := t.TempDir()
	keep := func(ctx context.Context, r *run) error { // what a night leaves that cannot remove it
		if r.snapshots.wait(); !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		return errors.Join(os.RemoveAll(kept), os.CopyFS(kept, os.DirFS(dir)))
	}
	left := func() (owners []string) {
		t.Helper()
		all, _, err := generations.ListRemote(t.Context(), new(configs.Job), dir, quiet.Logger)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range all {
			owners = append(owners, filepath.Base(g.Owner))
		}
		slices.Sort(owners)
		return slices.Compact(owners)
	}
	for _, date := range []string{"2026-11-21", "2026-11-22"} {
		if err := night(date, keep); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(kept))); err != nil {
			t.Fatal(err)
		}
	}
	passes := 0
	if err := night("2026-11-22", func(ctx context.Context, r *run) error { // trained again with other settings, and killed
		if err := keep(ctx, r); err != nil || passes == 1 {
			return errors.Join(err, errCrash)
		}
		passes++
		return nil
	}, "seed=8"); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, []string{"2026-11-21", "2026-11-22"}) {
		t.Fatalf("the nights have left snapshots of %v", got)
	}
	m.night("2026-11-24")
	if got := left(); !slices.Equal(got, []string{"2026-11-22"}) {
		t.Errorf("left: %v", got)
	}
}

// TestRemoteQuarantineIsPrivate checks that only the owner can read bad rows in a remote directory,
// as on the machine itself.
func TestRemoteQuarantineIsPrivate(t *testing.T) {
	dir := t.TempDir()
	j := job(t, "deepfm", append(slices.Clip(resumeSettings(t, "bad rows")["bad rows"]), everyPass, "snapshots.remote="+dir)...)
	found := map[bool]int{} // files there, by whether they have bad rows
	opts := quiet
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		if !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			rows := bytes.Contains(data, []byte(`"reason":`))
			found[rows]++
			if private := info.Mode().Perm() == 0o600; private != rows {
				t.Errorf("%s: %v, bad rows: %v", path, info.Mode(), rows)
			}
			return nil
		})
	}
	if _, err := Train(t.Context(), j, opts); err != nil {
		t.Fatal(err)
	}
	if found[true] == 0 || found[false] == 0 {
		t.Errorf("found %v", found)
	}
}
