package trainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/generations"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// wantRemote fails the test unless a remote directory has these generations, each with its
// night, the newest first.
func wantRemote(t *testing.T, uri string, numbers []int, nights []string) []generations.Remote {
	t.Helper()
	all, _, err := generations.ListRemote(t.Context(), new(configs.Job), uri, quiet.Logger)
	if err != nil {
		t.Fatal(err)
	}
	var gotNumbers []int
	var gotNights []string
	for _, g := range all {
		gotNumbers, gotNights = append(gotNumbers, g.Generation), append(gotNights, g.Night)
	}
	if !slices.Equal(gotNumbers, numbers) || !slices.Equal(gotNights, nights) {
		t.Fatalf("the remote directory has %v of %v, want %v of %v", gotNumbers, gotNights, numbers, nights)
	}
	return all
}

// TestPublishesMissedNights checks that the models of nights in which the remote directory could
// not be written to are published by the next night that can do it, in their order.
func TestPublishesMissedNights(t *testing.T) {
	for name, set := range map[string][]string{
		"one directory":       onSSD("output.keep_generations=4"),
		"a directory a night": {"output.model_dir=AT/models/{{date}}"},
	} {
		t.Run(name, func(t *testing.T) {
			uri := t.TempDir() + "/remote"
			m := newMachine(t, uri, append(set, "output.remote_keep_generations=3")...)
			m.night("2026-11-21")
			if err := os.Rename(uri, uri+".away"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(uri, nil, 0o644); err != nil { // no directory can be made
				t.Fatal(err)
			}
			for _, date := range []string{"2026-11-22", "2026-11-23"} {
				if s := m.night(date); s.NotPublished == "" {
					t.Fatal("it is published")
				}
			}
			if err := os.Remove(uri); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(uri+".away", uri); err != nil {
				t.Fatal(err)
			}
			s := m.night("2026-11-24")
			if s.Published == nil || len(s.Published.Earlier) != 2 {
				t.Errorf("published %+v", s.Published)
			}
			m.said("publishing the model of an earlier run")
			all := wantRemote(t, uri, []int{4, 3, 2}, []string{"2026-11-24", "2026-11-23", "2026-11-22"})
			for i, from := range []string{"3", "2", "1"} {
				if all[i].StartedFrom != from && name == "one directory" {
					t.Errorf("generation %d was made from %s", all[i].Generation, all[i].StartedFrom)
				}
			}
			// What is there is not published again, and what was deleted there stays away.
			if s := m.night("2026-11-25"); s.Published == nil || len(s.Published.Earlier) != 0 {
				t.Errorf("published %+v", s.Published)
			}
			wantRemote(t, uri, []int{5, 4, 3}, []string{"2026-11-25", "2026-11-24", "2026-11-23"})
		})
	}
}

// TestPublishesAfterMissedNight checks that `aibox publish` publishes missing earlier models before
// the model, and skips an earlier model that is damaged.
func TestPublishesAfterMissedNight(t *testing.T) {
	m := newMachine(t, "", "output.keep_generations=3")
	for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23"} {
		m.night(date)
	}
	dir := filepath.Join(m.at, "model")
	if err := os.Remove(filepath.Join(dir, "gen-000002", "statistics.json")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	publish := func(model string) *remote.Published {
		t.Helper()
		out, err := transfer.Publish(t.Context(), transfer.PublishOptions{Model: model, Remote: m.at + "/remote", Options: transfer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := publish(dir); out.Generation != 3 || len(out.Earlier) != 0 || !strings.Contains(log.String(), "could not be published; those made from it do not need it") {
		t.Errorf("%+v\n%s", out, log.String())
	}
	wantRemote(t, m.at+"/remote", []int{3}, []string{"2026-11-23"})
	// A model is not published as a newer one than those that were made from it.
	log.Reset()
	if out := publish(dir); !out.Already || !strings.Contains(log.String(), "is not published, because one that was made from it is there") {
		t.Errorf("%+v\n%s", out, log.String())
	}
	wantRemote(t, m.at+"/remote", []int{3}, []string{"2026-11-23"})
}

// goesBack lets a model directory go back from its second generation to the first one, which
// becomes the third of the remote directory.
func goesBack(t *testing.T, dir, uri string) {
	t.Helper()
	if _, err := modeldir.Rollback(dir, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one changes nothing
		out, err := transfer.PublishAgain(t.Context(), dir, quiet.transfer())
		if err != nil || out == nil || out.Generation != 3 || out.UploadedBytes != 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		wantRemote(t, uri, []int{3, 2}, []string{"2026-11-21", "2026-11-22"})
	}
}

// TestRollbackRemotely checks that the model to which a model directory was rolled back is the
// newest one of the remote directory, and that the next night, on this machine and on a new one,
// starts from it.
func TestRollbackRemotely(t *testing.T) {
	for name, set := range map[string][]string{"memory": nil, "ssd": onSSD("sparse_table.dirs=[AT/a, AT/b]")} {
		t.Run(name, func(t *testing.T) {
			uri := t.TempDir() + "/remote"
			m := newMachine(t, uri, append(set, "output.remote_keep_generations=3", "output.keep_generations=3")...)
			first := m.night("2026-11-21")
			m.night("2026-11-22")
			dir := filepath.Join(m.at, "model")
			goesBack(t, dir, uri)
			// A machine that has nothing starts from it.
			other := newMachine(t, uri, append(set, "output.remote_keep_generations=3")...)
			elsewhere := other.night("2026-11-23", `output.remote="`+uri+`"`)
			other.said("the model is restored")
			here := m.night("2026-11-23")
			if here.Digest != elsewhere.Digest || here.Digest == first.Digest {
				t.Errorf("digest %s here, %s on the other machine", here.Digest, elsewhere.Digest)
			}
			all := wantRemote(t, uri, []int{5, 4, 3}, []string{"2026-11-23", "2026-11-23", "2026-11-21"})
			if all[0].StartedFrom != "3" {
				t.Errorf("it was made from %s", all[0].StartedFrom)
			}
			// The other machine's model is not the newest one any more, and it does not make it so
			// by a second attempt to publish it: this machine has published since.
			if out, err := transfer.Publish(t.Context(), transfer.PublishOptions{Model: filepath.Join(other.at, "model"), Options: quiet.transfer()}); err != nil || !out.Already || out.Generation != 4 {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}

// TestRollbackWhilePublishing checks a rollback while a night publishes its model, before it has
// looked at the model directory, and after that. The newest model in the remote directory must be
// the one that the model directory has gone back to, although the rollback has found it there as
// the newest one.
func TestRollbackWhilePublishing(t *testing.T) {
	for _, at := range []string{"publishing the model", "a manifest of the remote directory cannot be read"} {
		uri := t.TempDir() + "/remote"
		m := newMachine(t, uri)
		m.night("2026-11-21")
		broken := filepath.Join(uri, "snapshots", "000001-0123456789abcdef.json") // for the message
		if err := errors.Join(os.MkdirAll(filepath.Dir(broken), 0o755), os.WriteFile(broken, []byte("{"), 0o644)); err != nil {
			t.Fatal(err)
		}
		j, err := m.job("2026-11-22")
		if err != nil {
			t.Fatal(err)
		}
		rolledBack := false
		opts := quiet
		opts.Logger = slog.New(onMessage{quiet.Logger.Handler(), at, func() {
			if rolledBack {
				return
			}
			rolledBack = true
			if _, err := modeldir.Rollback(j.Output.ModelDir, 0); err != nil {
				t.Error(err)
			}
			if out, err := transfer.PublishAgain(t.Context(), j.Output.ModelDir, quiet.transfer()); err != nil || !out.Already {
				t.Errorf("%+v, %v", out, err)
			}
		}})
		s, err := Train(t.Context(), j, opts)
		if err != nil || !rolledBack || s.Published == nil || s.Published.Generation != 2 {
			t.Fatalf("%q: rolled back: %v; %+v, %v", at, rolledBack, s, err)
		}
		wantRemote(t, uri, []int{3, 2}, []string{"2026-11-21", "2026-11-22"})
	}
}

// TestRestoreWithoutReports checks that if a report is damaged or missing, only the report is lost
// and not the model, and that the warning and the result name it.
func TestRestoreWithoutReports(t *testing.T) {
	uri := t.TempDir() + "/remote"
	m := newMachine(t, uri, onSSD("output.tensorboard=AT/model/tensorboard")...)
	digest := m.night("2026-11-21").Digest
	objects := reportObjects(t, uri)
	if len(objects) < 3 {
		t.Fatalf("the reports are %v", objects)
	}
	i := 0
	for _, object := range objects {
		at := filepath.Join(uri, "objects", object)
		data, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		if i++; i%2 == 0 {
			err = os.Remove(at)
		} else {
			data[0] ^= 1
			err = os.WriteFile(at, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	to := filepath.Join(t.TempDir(), "model")
	out, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, To: to, Options: transfer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
	if err != nil {
		t.Fatal(err)
	}
	for name := range objects {
		if !slices.Contains(out.Dropped, name) || !strings.Contains(log.String(), "file="+name) {
			t.Errorf("%s is not among those that were dropped, %v, or the log does not name it", name, out.Dropped)
		}
	}
	in, err := inference.Inspect(t.Context(), to, true, testjobs.Quiet)
	if err != nil || in.Digest != digest {
		t.Errorf("%+v, %v, want the digest %s", in, err, digest)
	}
	// The next night goes on from it.
	again := newMachine(t, uri, onSSD()...)
	again.night("2026-11-22")
	again.said("is restored without it")
}

// reportObjects are the objects of the reports of a remote directory's only generation.
func reportObjects(t *testing.T, uri string) map[string]string {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(uri, "generations", "*.json"))
	if err != nil || len(manifests) != 1 {
		t.Fatal(manifests, err)
	}
	data, err := os.ReadFile(manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Manifest remote.Manifest }
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, file := range f.Manifest.Files {
		if strings.HasPrefix(file.Name, "reports/") && file.Bytes > 0 {
			out[file.Name] = file.Parts[0].Object
		}
	}
	return out
}
