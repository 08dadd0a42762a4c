package trainer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// unmount moves a remote directory away, as if its file system were no longer mounted, and returns
// what mounts it again. mountPoint says that an empty directory stays in its place.
func unmount(t *testing.T, dir string, mountPoint bool) (mount func()) {
	t.Helper()
	err := os.Rename(dir, dir+".away")
	if mountPoint {
		err = errors.Join(err, os.Mkdir(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if mountPoint {
			if err := os.Remove(dir); err != nil { // nothing may have been written beneath
				t.Fatal(err)
			}
		}
		if err := os.Rename(dir+".away", dir); err != nil {
			t.Fatal(err)
		}
	}
}

// when is a log that calls a function once, at the first message that begins with a text.
func when(log *bytes.Buffer, message string, then func()) *slog.Logger {
	return slog.New(&messageHandler{slog.NewTextHandler(log, nil), message, then})
}

type messageHandler struct {
	slog.Handler
	message string
	then    func()
}

func (h *messageHandler) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.message) && h.then != nil {
		then := h.then
		h.then = nil
		then()
	}
	return h.Handler.Handle(ctx, r)
}

// TestRestOfModelAway checks that a model that is usable while files of it have not arrived stays as
// it is when `aibox restore` is repeated, or another command completes it, while the remote directory
// is not mounted: once it is mounted again, the rest arrives.
func TestRestOfModelAway(t *testing.T) {
	j, uri := madeElsewhere(t, 1)
	for _, mountPoint := range []bool{false, true} {
		o := restoringTo(t, uri)
		interrupted(t, o)
		dirs := append(slices.Clip(o.Dirs), o.To)
		before := records(t, dirs...)
		mount := unmount(t, uri, mountPoint)
		for range 2 {
			if _, err := transfer.Restore(t.Context(), o); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount") {
				t.Errorf("restoring while the directory is away: %v", err)
			}
			_, err := transfer.Publish(t.Context(), transfer.PublishOptions{Model: o.To, Remote: filepath.Join(t.TempDir(), "other"), Options: o.Options})
			if errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount") {
				t.Errorf("publishing while the directory is away: %v", err)
			}
		}
		if m, err := modeldir.Open(o.To); err != nil {
			t.Error(err)
		} else if err := m.Close(); err != nil {
			t.Error(err)
		}
		if after := records(t, dirs...); after != before {
			t.Errorf("%d directories had files that had not arrived, and %d still have", before, after)
		}
		mount()
		if _, err := transfer.Restore(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		want, err := inference.Inspect(t.Context(), j.Output.ModelDir, false, testjobs.Quiet)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := inference.Inspect(t.Context(), o.To, false, testjobs.Quiet); err != nil || got.Digest != want.Digest {
			t.Errorf("the model that was completed differs: %v", err)
		}
		if n := records(t, dirs...); n > 0 {
			t.Errorf("%d directories still lack files", n)
		}
	}
}

// TestSnapshotsVanish checks that a job does not start over if snapshots.remote vanishes when its
// snapshots have been listed. When it is mounted again, the job resumes.
func TestSnapshotsVanish(t *testing.T) {
	dir := filepath.Join(mounted(t), "remote")
	j := job(t, "fm", everyPass, "snapshots.remote="+dir)
	if !lostAt(t, j, 6, true) {
		t.Fatal("there were not so many passes")
	}
	var log bytes.Buffer
	var mount func()
	opts := quiet
	opts.Logger = when(&log, "there is no snapshot of an interrupted run on this machine", func() { mount = unmount(t, dir, true) })
	if _, err := Train(t.Context(), j, opts); mount == nil || errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount") || !strings.Contains(err.Error(), "--fresh") {
		t.Fatalf("it ended with %v\n%s", err, &log)
	}
	mount()
	if s := train(t, j); len(s.Resumed) != 1 || s.Resumed[0].Step == 0 {
		t.Errorf("resumed %+v", s.Resumed)
	}
}

// TestModelVanishes checks that a job does not begin with a new model if output.remote vanishes
// while the model to start from is restored, and that nothing is published below the mount point.
func TestModelVanishes(t *testing.T) {
	uri := filepath.Join(t.TempDir(), "mnt")
	newMachine(t, uri).night("2026-11-21")
	m := newMachine(t, uri)
	j, err := m.job("2026-11-22")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var mount func()
	opts := quiet
	opts.Logger = when(&log, "restoring a model", func() { mount = unmount(t, uri, true) })
	if _, err := Train(t.Context(), j, opts); mount == nil || errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount") {
		t.Fatalf("it ended with %v\n%s", err, &log)
	}
	mount()
	if s := m.night("2026-11-22"); s.WarmStart == "" || s.Published == nil || s.Published.Generation != 2 {
		t.Errorf("warm start %q, published %+v", s.WarmStart, s.Published)
	}
}

// TestArrivingSnapshotAway checks that a run whose table has not arrived completely keeps its newest
// snapshot, which is on this machine only, if its job is started while snapshots.remote is not
// mounted.
func TestArrivingSnapshotAway(t *testing.T) {
	dir := filepath.Join(mounted(t), "remote")
	j := withBuckets(t, everyPass, "snapshots.remote="+dir)
	if !lostAt(t, j, 8, true) {
		t.Fatal("there were not so many passes")
	}
	inBackground(t, func(*remote.Arriving) {})
	last := int64(0)
	crashAfter(t, j, 3, func(r *run) {
		r.snapshots.wait()
		last = r.snapshots.saved.Record.Step
	})
	inBackground(t, (*remote.Arriving).Start)
	record := recordOf(t, j.Output.ModelDir)
	said, err := remote.AnnouncedIn(record)
	if err != nil || said == nil {
		t.Fatalf("all files have arrived: %v", err)
	}
	for _, f := range said.Manifest.Files { // as if nothing had been read yet
		if at := filepath.Join(filepath.Dir(record), filepath.Base(f.Name)); strings.HasSuffix(at, ".bucket") {
			if err := errors.Join(os.Truncate(at, 0), os.Truncate(at, f.Bytes)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	for _, mountPoint := range []bool{false, true} {
		mount := unmount(t, dir, mountPoint)
		if _, err := Train(t.Context(), j, quiet); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount") {
			t.Errorf("while the directory is away, it ended with %v", err)
		}
		mount()
	}
	s := train(t, j)
	if n := len(s.Resumed); n == 0 || s.Resumed[n-1].Step != last {
		t.Errorf("resumed %+v, and the last snapshot was of step %d", s.Resumed, last)
	}
}

// TestPartialRecoveryNotMounted checks that lost rows do not go back to a new model if the run has
// uploaded snapshots and snapshots.remote is an empty mount point. When it is mounted, they go back
// to a snapshot.
func TestPartialRecoveryNotMounted(t *testing.T) {
	dir := filepath.Join(mounted(t), "remote")
	j := partialJob(t, "snapshots.remote="+dir, "recovery.max_lost_samples=1")
	killedAfterUpload(t, j, 6)
	lose(t, j, 1, "new disk")
	mount := unmount(t, dir, true)
	for range 2 { // nothing is lost by trying
		if _, err := Train(t.Context(), j, quiet); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount") || !strings.Contains(err.Error(), "--fresh") {
			t.Fatalf("it ended with %v", err)
		}
	}
	mount()
	s, said := trainAloud(t, j)
	if len(s.Recoveries) != 1 || s.Recoveries[0].Mode != configs.RecoveryPartial || !strings.HasPrefix(s.Recoveries[0].From, dir) {
		t.Errorf("recoveries %+v\n%s", s.Recoveries, said)
	}
}
