package trainer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/internal/errkind"
	"aibox/trainer/transfer"
)

// TestRemoteNotMounted checks that training does not begin with a new model if the machine has no
// model of the job and output.remote does not exist, and that it does not start over if the machine
// has no snapshot and snapshots.remote does not exist. The error says what to do. A machine that
// has models needs neither directory, and --fresh needs no snapshots.
func TestRemoteNotMounted(t *testing.T) {
	at := t.TempDir()
	dir, away := filepath.Join(at, "mounted"), filepath.Join(at, "away")
	remote, snapshots := filepath.Join(dir, "models"), filepath.Join(dir, "snapshots")
	if err := errors.Join(os.MkdirAll(remote, 0o755), os.MkdirAll(snapshots, 0o755)); err != nil {
		t.Fatal(err)
	}
	set := []string{everyPass, "training.max_examples=640"}
	withSnapshots := `snapshots.remote="` + snapshots + `"`
	alone := newMachine(t, "", set...)
	alone.night("2026-11-21")
	want := alone.night("2026-11-22").Digest
	home, other := newMachine(t, "file://"+remote, set...), newMachine(t, "file://"+remote, set...)
	first := newMachine(t, "", set...)
	home.night("2026-11-21", withSnapshots)
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	refused := func(m *machine, missing string, set ...string) {
		t.Helper()
		_, err := m.train("2026-11-22", set...)
		if errkind.Of(t.Context(), err) != errkind.IO || !errors.Is(err, transfer.ErrAbsent) || !strings.Contains(err.Error(), "mount its file system") || !strings.Contains(err.Error(), "mkdir -p "+missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	refused(first, snapshots, withSnapshots)
	refused(other, snapshots, withSnapshots)
	refused(other, remote)
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was made", dir)
	}
	if s := home.night("2026-11-22", withSnapshots, `output.remote=""`); s.Digest != want {
		t.Errorf("a machine that has models: digest %s, want %s", s.Digest, want)
	}
	home.said("snapshots.remote does not exist")
	fresh := quiet
	fresh.Fresh = true
	if _, err := Train(t.Context(), job(t, "fm", append(set, "snapshots.remote="+snapshots+"-2")...), fresh); err != nil {
		t.Errorf("with --fresh: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was made to upload snapshots", dir)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	if s := other.night("2026-11-22", withSnapshots); s.Digest != want {
		t.Errorf("a new machine: digest %s, want %s", s.Digest, want)
	}
}

// TestAllThatIsMissing checks that one error names all places that a first night needs and that are
// missing. A machine that has models, or a snapshot, needs only the data.
func TestAllThatIsMissing(t *testing.T) {
	at := t.TempDir()
	remote, snapshots := `output.remote="`+at+`/models"`, `snapshots.remote="`+at+`/snapshots"`
	data, eval, start := "data.train=["+at+"/train.tsv]", "data.eval=["+at+"/eval.tsv]", "training.warm_start="+at+"/start"
	all := map[string]string{remote: "output.remote", snapshots: "snapshots.remote", data: "data.train", eval: "data.eval", start: "training.warm_start"}
	refused := func(m *machine, set []string, want ...string) {
		t.Helper()
		_, err := m.train("2026-11-21", set...)
		if errkind.Of(t.Context(), err) != errkind.IO {
			t.Fatalf("%v: %v", set, err)
		}
		for _, key := range all {
			if strings.Contains(err.Error(), key) != slices.Contains(want, key) {
				t.Errorf("%v: the error names %s, or does not:\n%v", set, key, err)
			}
		}
	}
	m := newMachine(t, "", everyPass, "training.max_examples=640")
	refused(m, []string{remote, snapshots}, "output.remote", "snapshots.remote")
	refused(m, []string{remote, data}, "output.remote", "data.train")
	refused(m, []string{snapshots, eval, start}, "snapshots.remote", "data.eval", "training.warm_start")
	refused(m, []string{data, eval}, "data.train", "data.eval")
	m.night("2026-11-20")
	refused(m, []string{remote, snapshots, data}, "data.train")
}

// TestSnapshotsNotMounted checks that a run that has uploaded snapshots and lost a directory of its
// table does not start over if snapshots.remote is empty, as its mount point is if the file system
// is not mounted.
func TestSnapshotsNotMounted(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	for _, exists := range []bool{true, false} {
		dir := mounted(t)
		j := job(t, "fm", onTwoDisks("snapshots.remote="+dir+"/remote")...)
		killedAfterUpload(t, j, 6)
		lose(t, j, 1, "new disk")
		err := os.Rename(dir, dir+".aside")
		if exists {
			err = errors.Join(err, os.MkdirAll(dir+"/remote", 0o755))
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // nothing is lost by trying
			if _, err := Train(t.Context(), j, quiet); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount") || !strings.Contains(err.Error(), "--fresh") {
				t.Fatalf("it ended with %v", err)
			}
		}
		if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+".aside", dir)); err != nil {
			t.Fatal(err)
		}
		s := train(t, j)
		if len(s.Recoveries) != 1 || s.Recoveries[0].From != j.Snapshots.Remote {
			t.Errorf("recoveries %+v", s.Recoveries)
		}
		got := outcome(t, j, s)
		got.compare(t, &want)
	}
}

// TestUploadedBeneathMount checks that snapshots are not uploaded while snapshots.remote does not
// exist, since its file system may not be mounted, and that they are uploaded once it exists.
func TestUploadedBeneathMount(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mounted")
	j := job(t, "fm", everyPass, "training.max_examples=640", "snapshots.remote="+dir, `snapshots.remote_every="1 snapshot"`)
	opts, made, uploaded := quiet, false, int64(0)
	opts.Fresh = true // so that the job begins without the directory
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		r.snapshots.uploads.Finish(ctx)
		s := r.snapshots.uploads.Summary()
		if uploaded = s.Uploaded; made || s.Failed == 0 && uploaded == 0 {
			return nil
		}
		if _, err := os.Stat(dir); err == nil || uploaded > 0 {
			t.Errorf("%s was made", dir)
		}
		if !strings.Contains(s.Error, "mkdir -p "+dir) {
			t.Errorf("the upload has failed with %q", s.Error)
		}
		made = true
		return os.MkdirAll(dir, 0o755)
	}
	if _, err := Train(t.Context(), j, opts); err != nil {
		t.Fatal(err)
	}
	if !made || uploaded == 0 {
		t.Errorf("an upload has failed: %t; afterwards, %d were uploaded", made, uploaded)
	}
}

// TestPublishedBeneathMount checks that a night does not publish its model, and says so, if the
// file system is not mounted, which an empty directory shows if models were published there before.
// A later night publishes both.
func TestPublishedBeneathMount(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mounted")
	m := newMachine(t, "file://"+dir, "training.max_examples=640", "output.keep_generations=3")
	m.night("2026-11-21")
	if err := errors.Join(os.Rename(dir, dir+"-away"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if s := m.night("2026-11-22"); !strings.Contains(s.NotPublished, "mount its file system") {
		t.Errorf("it is published, or another reason is given: %q", s.NotPublished)
	}
	m.said("the model is committed, but not published")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+"-away", dir)); err != nil {
		t.Fatal(err)
	}
	if s := m.night("2026-11-23"); s.Published == nil || len(s.Published.Earlier) != 1 {
		t.Errorf("published %+v: %s", s.Published, s.NotPublished)
	}
}

// TestRemoteMistyped checks that neither a first night nor a publication makes a remote directory
// within a directory that does not exist, and that no night publishes into a directory with data.
// If only the last part of the path is new, the directory is made, and the log says so.
func TestRemoteMistyped(t *testing.T) {
	at := t.TempDir()
	m := newMachine(t, "", `training.warm_start=""`)
	wrong, right := filepath.Join(at, "mistyped", "models"), filepath.Join(at, "models")
	_, err := m.train("2026-11-21", "output.remote="+wrong)
	if !errors.Is(err, transfer.ErrAbsent) || errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mkdir -p "+wrong) {
		t.Errorf("a first night: %v", err)
	}
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "day_0.tsv"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := m.train("2026-11-21", "output.remote="+data); errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "output.remote: remote directory "+data+": it has no models, but other files, such as day_0.tsv") {
		t.Errorf("a first night with data there: %v", err)
	}
	if s := m.night("2026-11-21", "output.remote="+right); s.Published == nil {
		t.Errorf("it is not published: %s", s.NotPublished)
	}
	m.said("the remote directory has no models yet")
	for _, to := range []string{wrong, "file://" + wrong} {
		_, err = transfer.Publish(t.Context(), transfer.PublishOptions{Model: m.at + "/model", Remote: to, Options: quiet.transfer()})
		if !errors.Is(err, transfer.ErrAbsent) {
			t.Errorf("publishing to %s: %v", to, err)
		}
	}
	if _, err := os.Stat(filepath.Dir(wrong)); err == nil {
		t.Errorf("%s was made", filepath.Dir(wrong))
	}
}
