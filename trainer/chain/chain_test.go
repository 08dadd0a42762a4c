package chain

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
)

// jobOf is a job of a night, "" for one without a date, with these training data.
func jobOf(t *testing.T, night, data string) *configs.Job {
	t.Helper()
	set := []string{"data.train=[" + data + "]", "output.model_dir=" + t.TempDir(), "training.warm_start=latest", "timezone=UTC"}
	if night != "" {
		set = append(set, `name="n-{{date}}"`)
	}
	j, err := configs.Parse("test.yaml", []byte(testjobs.Text), configs.LoadOptions{Set: append(set, "model.kind=lr"), Date: night})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestMayStartFrom checks that a run starts from models of earlier nights, and from one of the same
// night only if that was trained on other data. A run without a date may start from every model.
func TestMayStartFrom(t *testing.T) {
	const data = "/data/a.tsv"
	same := TrainDataHash(jobOf(t, "2026-11-20", data))
	for _, c := range []struct {
		job, model string // nights
		trained    string
		want       bool
	}{
		{"2026-11-20", "2026-11-19", same, true},
		{"2026-11-20", "2026-11-20", same, false},
		{"2026-11-20", "2026-11-20", "other data", true},
		{"2026-11-20", "2026-11-20", "", false}, // an earlier version saved it, and does not say
		{"2026-11-20", "2026-11-21", "other data", false},
		{"2026-11-20", "", same, true},
		{"", "2026-11-21", same, true},
	} {
		m := &modeldir.Manifest{Night: c.model, TrainData: c.trained}
		if got := New(jobOf(t, c.job, data), slog.New(slog.DiscardHandler)).MayStartFrom(m); got != c.want {
			t.Errorf("a job of %q from a model of %q that was trained on %q: %v", c.job, c.model, c.trained, got)
		}
	}
}

// TestStartsAreTheSame checks that models are the same if their identities are equal, wherever they
// are, and that of two models the one that was saved later is newer, whatever their numbers are.
func TestStartsAreTheSame(t *testing.T) {
	start := func(dir, generation, identity, savedAt string) *Start {
		return &Start{Origin: modeldir.Origin{ModelDir: dir, Generation: generation, Identity: identity}, SavedAt: savedAt}
	}
	first := start("", "gen-000005", "a", "2026-11-19T01:00:00Z")
	for _, c := range []struct {
		other       *Start
		same, newer bool
	}{
		{start("/elsewhere", "gen-000001", "a", "2026-11-19T01:00:00Z"), true, false},
		{start("", "gen-000005", "b", "2026-11-19T01:00:00Z"), false, false},
		{start("", "gen-000002", "b", "2026-11-20T01:00:00Z"), false, true},
		{start("", "gen-000006", "b", "2026-11-18T01:00:00Z"), false, false},
		{start("", "gen-000006", "", "2026-11-19T01:00:00Z"), false, true}, // numbers tell where times do not
		{start("/elsewhere", "gen-000006", "", ""), false, false},
	} {
		if same, newer := c.other.same(first), c.other.newer(first); same != c.same || newer != c.newer {
			t.Errorf("%+v: same %v, newer %v", c.other, same, newer)
		}
	}
}

// TestOtherStartThatCannotBeRead checks that if the model to start from cannot be read, an
// interrupted run is resumed, and the log says what is unknown. If that model was deleted, nothing
// is logged.
func TestOtherStartThatCannotBeRead(t *testing.T) {
	at := t.TempDir()
	before := &Start{Origin: modeldir.Origin{ModelDir: at, Generation: "gen-000001", Identity: "a"}, Name: at + "@1"}
	for _, start := range []string{at, at + "@1", configs.WarmStartLatest} {
		job := jobOf(t, "", "/data/a.tsv")
		job.Training.WarmStart, job.Output.ModelDir = start, at
		for _, fault := range []error{nil, unix.EIO} {
			diskfault.Inject(func(operation, path string) error { return fault })
			var log bytes.Buffer
			reason := New(job, slog.New(slog.NewTextHandler(&log, nil))).OtherStart(before)
			diskfault.Inject(nil)
			if reason != "" || strings.Contains(log.String(), "it is not known") != (fault != nil) {
				t.Errorf("%s, with the error %v: %q\n%s", start, fault, reason, &log)
			}
		}
	}
}

// TestDirectoryOfNightsThatCannotBeListed checks that the chain does not begin with a new model if
// the directory with the directories of earlier nights cannot be listed: the directory of the night
// before is found all the same.
func TestDirectoryOfNightsThatCannotBeListed(t *testing.T) {
	nights := t.TempDir()
	before := filepath.Join(nights, "2026-11-19")
	if err := os.Mkdir(before, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(before, modeldir.ManifestName), []byte("damaged"), 0o644); err != nil { // which whoever finds it says
		t.Fatal(err)
	}
	job, err := configs.Parse("test.yaml", []byte(testjobs.Text), configs.LoadOptions{Date: "2026-11-20", Set: []string{
		"data.train=[/data/a.tsv]", "output.model_dir=" + nights + "/{{date}}", "training.warm_start=latest", "timezone=UTC", "model.kind=lr",
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer diskfault.Inject(nil)
	for _, fault := range []error{nil, unix.EIO, unix.EACCES} {
		diskfault.Inject(func(operation, path string) error {
			if operation == "list" && path == nights {
				return fault
			}
			return nil
		})
		if c, err := New(job, slog.New(slog.DiscardHandler)).Latest(); err == nil {
			t.Errorf("where listing fails with %v, the night begins with %v", fault, c)
		}
	}
}
