package trainer

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// machine is a machine of its own for the nights of one job, whose models are published to
// one remote directory.
type machine struct {
	t   *testing.T
	at  string
	set []string
	log bytes.Buffer // of the last night
}

// newMachine returns a machine. The settings may hold AT for a directory on it, and the
// job's training data are those of the night in data.
func newMachine(t *testing.T, remote string, set ...string) *machine {
	if path := strings.TrimPrefix(remote, "file://"); path != "" && !strings.Contains(path, "://") {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := &machine{t: t, at: t.TempDir()}
	for _, s := range append([]string{"output.model_dir=AT/model", "training.warm_start=latest", "timezone=UTC", `output.remote="` + remote + `"`}, set...) {
		m.set = append(m.set, strings.ReplaceAll(s, "AT", m.at))
	}
	return m
}

// night trains the job of a date.
func (m *machine) night(date string, set ...string) *report.Summary {
	m.t.Helper()
	s, err := m.train(date, set...)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// job is the job of a date.
func (m *machine) job(date string, set ...string) (*configs.Job, error) {
	log, err := testjobs.Log()
	if err != nil {
		return nil, err
	}
	file := log + "/train-0.tsv"
	if strings.HasSuffix(date, "2") || strings.HasSuffix(date, "4") {
		file = log + "/train-1.tsv.gz"
	}
	all := append([]string{"data.train=[" + file + "]", "data.eval=[" + log + "/eval.tsv]", "model.embedding_dim=4"}, m.set...)
	for _, s := range set {
		all = append(all, strings.ReplaceAll(s, "AT", m.at))
	}
	return configs.Parse("test.yaml", []byte(strings.Replace(testjobs.Text, "KIND", "fm", 1)), configs.LoadOptions{Set: all, Date: date})
}

func (m *machine) train(date string, set ...string) (*report.Summary, error) {
	j, err := m.job(date, set...)
	if err != nil {
		return nil, err
	}
	m.log.Reset()
	s, err := Train(m.t.Context(), j, Options{Logger: slog.New(slog.NewTextHandler(&m.log, nil)), Version: "test"})
	if err != nil {
		return nil, err
	}
	if s.Digest == "" {
		in, err := inference.Inspect(m.t.Context(), j.Output.ModelDir, false, testjobs.Quiet)
		if err != nil {
			return nil, err
		}
		s.Digest = in.Digest
	}
	return s, nil
}

func (m *machine) said(text string) {
	m.t.Helper()
	if !strings.Contains(m.log.String(), text) {
		m.t.Errorf("the log does not say %q:\n%s", text, m.log.String())
	}
}

// TestNightsOnOtherMachines trains five nights, each on another machine that has only the remote
// directory. The models must be those of one machine without a remote directory, bit for bit, also
// with other directories, and another number of them.
func TestNightsOnOtherMachines(t *testing.T) {
	for name, kinds := range map[string][][]string{
		"memory": {{}, {}, {}, {}, {}},
		"ssd":    {onSSD(), onSSD("sparse_table.dirs=[AT/a, AT/b]"), onSSD("sparse_table.dirs=[AT/c, AT/d, AT/e]"), onSSD("sparse_table.dirs=[AT/f]"), onSSD()},
		"moving": {onSSD("sparse_table.dirs=[AT/a, AT/b]"), {}, onSSD("sparse_table.dirs=[AT/c]"), onSSD(), onSSD("sparse_table.value_format=bfloat16")},
		"16 bit": {onSSD("sparse_table.value_format=float16"), onSSD("sparse_table.value_format=float16"), {"sparse_table.value_format=float16"}, onSSD("sparse_table.value_format=float16"), onSSD("sparse_table.value_format=float16")},
	} {
		t.Run(name, func(t *testing.T) {
			remote := "file://" + t.TempDir() + "/remote"
			home := newMachine(t, "")
			for i, set := range kinds {
				date := fmt.Sprintf("2026-11-2%d", i+1)
				want := home.night(date, set...)
				m := newMachine(t, remote, set...)
				got := m.night(date)
				if got.Digest != want.Digest {
					t.Errorf("night %d: digest %s, want %s", i+1, got.Digest, want.Digest)
				}
				if got.Published == nil || got.Published.Generation != i+1 {
					t.Errorf("night %d: published %+v", i+1, got.Published)
				}
				if i > 0 {
					m.said("the model is restored")
					if _, n := modeldir.SplitName(got.WarmStart); n != i {
						t.Errorf("night %d: started from %s", i+1, got.WarmStart)
					}
				}
				// A night that is trained again starts from what it started from.
				if again := m.night(date, `output.remote=""`); again.Digest != want.Digest {
					t.Errorf("night %d again: digest %s, want %s", i+1, again.Digest, want.Digest)
				}
			}
		})
	}
}

// TestUploadsWhatChanged checks that a night uploads at most 1.2 times the bytes of the files that
// it has written, which do not include those that it shares with the night before.
func TestUploadsWhatChanged(t *testing.T) {
	m := newMachine(t, t.TempDir()+"/remote", onSSD("sparse_table.dirs=[AT/a, AT/b]")...)
	before := make(map[string]bool)
	for i, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24"} {
		s := m.night(date)
		written, all := int64(0), int64(0)
		for _, dir := range []string{"model", "a", "b"} {
			err := filepath.WalkDir(filepath.Join(m.at, dir), func(path string, e os.DirEntry, err error) error {
				if err != nil || e.IsDir() || !strings.Contains(path, fmt.Sprintf("gen-%06d", i+1)) {
					return err
				}
				info, err := e.Info()
				if err != nil {
					return err
				}
				all += info.Size()
				if shared := strings.HasSuffix(path, ".bucket") || strings.HasSuffix(path, ".delta"); !shared || !before[e.Name()] {
					written += info.Size()
				}
				before[e.Name()] = true
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if up := s.Published.UploadedBytes; float64(up) > 1.2*float64(written) {
			t.Errorf("night %d: %d bytes are uploaded, %d were written, of %d", i+1, up, written, all)
		} else {
			t.Logf("night %d: %d bytes are uploaded, %d were written, of %d", i+1, up, written, all)
		}
	}
}

// TestRestoreOlder checks that if the newest generation is damaged, the newest complete one before
// it is restored, and the log says so. A generation that is requested by its number is not
// replaced.
func TestRestoreOlder(t *testing.T) {
	uri := t.TempDir() + "/remote"
	m := newMachine(t, uri, onSSD("output.remote_keep_generations=3")...)
	digests := []string{""}
	for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23"} {
		digests = append(digests, m.night(date).Digest)
	}
	var log bytes.Buffer
	restore := func(from string) (*transfer.Restored, string, error) {
		log.Reset()
		at := t.TempDir()
		to, dirs := filepath.Join(at, "m"), []string{filepath.Join(at, "x"), filepath.Join(at, "y")}
		uri, number := remote.SplitURI(from)
		out, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, Number: number, To: to, Dirs: dirs, Options: transfer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil {
			return nil, "", err
		}
		in, err := inference.Inspect(t.Context(), to, true, testjobs.Quiet)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			if tables, err := os.ReadDir(dir); err != nil || len(tables) != 1 {
				t.Errorf("%s holds %v, %v: those of generations that are damaged are not deleted", dir, tables, err)
			}
		}
		return out, in.Digest, nil
	}
	damage := func(generation int, f func(path string) error) {
		t.Helper()
		manifests, err := filepath.Glob(filepath.Join(uri, "generations", fmt.Sprintf("%06d-*", generation)))
		if err != nil || len(manifests) != 1 {
			t.Fatal(manifests, err)
		}
		id := strings.TrimSuffix(filepath.Base(manifests[0])[7:], ".json")
		objects, err := filepath.Glob(filepath.Join(uri, "objects", id+"-*"))
		if err != nil || len(objects) == 0 {
			t.Fatal(objects, err)
		}
		if err := f(objects[len(objects)-1]); err != nil {
			t.Fatal(err)
		}
	}
	damage(3, func(path string) error { // the disk has changed a byte
		data, err := os.ReadFile(path)
		if err == nil {
			data[len(data)/2] ^= 1
			err = os.WriteFile(path, data, 0o644)
		}
		return err
	})
	out, digest, err := restore(uri)
	if err != nil || out.Generation != 2 || out.Older != 1 || digest != digests[2] || !strings.Contains(log.String(), "the newest older one is restored instead") {
		t.Errorf("%+v, %v\n%s", out, err, log.String())
	}
	if _, _, err := restore(uri + "@3"); err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), "no other one is restored instead") {
		t.Errorf("a generation that is damaged, by its number: %v", err)
	}
	damage(2, os.Remove)
	out, digest, err = restore(uri)
	if err != nil || out.Generation != 1 || out.Older != 2 || digest != digests[1] {
		t.Errorf("%+v, %v\n%s", out, err, log.String())
	}
	damage(1, func(path string) error { return os.Truncate(path, 1) })
	if _, _, err := restore(uri); err == nil || !strings.Contains(err.Error(), "none of the models that could be restored is intact (3 were tried)") {
		t.Errorf("all generations are damaged: %v", err)
	}
	// The next night heals what it needs.
	night := m.night("2026-11-24")
	m.said("is damaged; what the model needs of it is uploaded again")
	if out, digest, err := restore(uri); err != nil || out.Generation != 4 || digest != night.Digest {
		t.Errorf("%+v, %v", out, err)
	}
}
