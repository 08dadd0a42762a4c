package transfer

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
)

func publish(t *testing.T, dir string) error {
	t.Helper()
	_, err := Publish(t.Context(), PublishOptions{Model: dir, Options: quiet})
	return err
}

// refused fails the test unless a model is not published because its remote directory is empty. It
// returns the command that begins it anew.
func refused(t *testing.T, dir, far string) (command string) {
	t.Helper()
	err := publish(t, dir)
	if !errors.Is(err, ErrEmptied) || errkind.Of(t.Context(), err) != errkind.IO {
		t.Fatalf("published to a directory whose file system is not mounted: %v", err)
	}
	if left, err := os.ReadDir(far); err == nil && len(left) > 0 {
		t.Errorf("what was refused has written %v", left)
	}
	_, command, ok := strings.Cut(err.Error(), "start it afresh: ")
	if !ok || !strings.Contains(err.Error(), "mount its file system") || !strings.Contains(err.Error(), far) {
		t.Errorf("it does not say what to do: %v", err)
	}
	return command
}

// TestNotMounted: a model is not published to the empty directory in which a file system is not
// mounted, nor to one that does not exist for the same reason, as soon as the model directory, or one
// that its model was made from, has published there. It is when the file system is back, or when the
// command that the error names has been given. The first model is published anywhere.
func TestNotMounted(t *testing.T) {
	for name, scheme := range map[string]string{"path": "", "URI": "file://", "URI with a host": "file://localhost"} {
		for _, removed := range []bool{false, true} {
			far, dir := filepath.Join(t.TempDir(), "far"), model(t)
			makeModel(t, dir, scheme+far)
			for range 2 {
				if err := publish(t, dir); err != nil {
					t.Fatalf("%s: the first model: %v", name, err)
				}
			}
			if err := os.Rename(far, far+"-away"); err != nil {
				t.Fatal(err)
			}
			emptyRemote(t, far, removed)
			makeModel(t, dir, scheme+far)
			refused(t, dir, far)
			// A directory a night.
			m, err := modeldir.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			other, third := dir+"-2", dir+"-3"
			from := modeldir.Origin{ModelDir: dir, Generation: m.Generation, Identity: m.Identity()}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			second := makeModelFrom(t, other, scheme+far, from)
			refused(t, other, far)
			makeModelFrom(t, third, scheme+far, modeldir.Origin{ModelDir: other, Generation: second.Generation, Identity: second.Identity()})
			command := refused(t, third, far)
			emptyRemote(t, far, true)
			if err := os.Rename(far+"-away", far); err != nil {
				t.Fatal(err)
			}
			if err := publish(t, third); err != nil {
				t.Errorf("%s: when it is mounted again: %v", name, err)
			}
			emptyRemote(t, far, removed)
			refused(t, third, far)
			if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v, %s", command, err, out)
			}
			for range 2 {
				if err := publish(t, third); err != nil {
					t.Errorf("%s: begun anew: %v", name, err)
				}
			}
		}
	}
}

// TestNotMountedAfterRestore: a machine knows also the remote directory from which its model comes, and
// what an earlier version has noted of its publications.
func TestNotMountedAfterRestore(t *testing.T) {
	far, dir, to := filepath.Join(t.TempDir(), "far"), model(t), model(t)
	makeModel(t, dir, far)
	if err := publish(t, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), RestoreOptions{From: "file://" + far, To: to, Options: quiet}); err != nil {
		t.Fatal(err)
	}
	emptyRemote(t, far, false)
	refused(t, to, far)
	earlier := `{"remote": "file://` + far + `", "generation": 1, "published": {"uri": "x@1", "generation": 1}, "at": "2026-11-21T00:00:00Z"}`
	if err := os.WriteFile(filepath.Join(dir, ReportName), []byte(earlier), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, far)
	never := strings.Replace(earlier, `"published"`, `"not"`, 1)
	if err := os.WriteFile(filepath.Join(dir, ReportName), []byte(never), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := publish(t, dir); err != nil {
		t.Errorf("nothing says that models were published there: %v", err)
	}
	if r, err := readReport(dir); err != nil || r.At == "" || len(r.Known) != 1 {
		t.Errorf("what the run has reported is gone, or the publication is not noted: %+v", r)
	}
}

// TestEmptiedElsewhere: a directory of another kind than a mounted one is published to although it
// has lost its models, with a warning.
func TestEmptiedElsewhere(t *testing.T) {
	dir, far := model(t), t.TempDir()
	makeModel(t, dir, "hdfs://localhost:1/far")
	note(dir, "hdfs://localhost:1/far", &quiet)
	m, err := modeldir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	job, err := m.ParseJob(configs.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sources := jobsource.New(new(configs.Job), silent)
	defer sources.Close()
	store, err := sources.Directory(far)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := &publishing{job: job, Options: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	if err := o.checkEmptied(t.Context(), openStore("hdfs://localhost:1/far/", store), sources, m); err != nil || !strings.Contains(log.String(), "has lost the models") {
		t.Errorf("%v\n%s", err, &log)
	}
}

// TestForeignFiles: no model is published to a directory that has other files, such as data,
// instead of models; it is to one that has what file systems keep there, snapshots, or a
// subdirectory that somebody has made to begin it.
func TestForeignFiles(t *testing.T) {
	for _, c := range []struct {
		name    string // a file, or a directory if it ends with a slash
		begun   bool
		refused bool
	}{{"day_0.tsv", false, true}, {"day=2026-11-20/", false, true}, {"day_0.tsv", true, false}, {"lost+found/", false, false}, {".snapshot/", false, false}, {"snapshots/", false, false}} {
		dir, far := model(t), t.TempDir()
		makeModel(t, dir, far)
		at := filepath.Join(far, c.name)
		err := os.MkdirAll(at, 0o755)
		if !strings.HasSuffix(c.name, "/") {
			err = errors.Join(os.Remove(at), os.WriteFile(at, []byte("data"), 0o644))
		}
		if c.begun {
			err = errors.Join(err, os.Mkdir(filepath.Join(far, "generations"), 0o755))
		}
		if err != nil {
			t.Fatal(err)
		}
		err = publish(t, dir)
		if (err != nil) != c.refused {
			t.Errorf("%s, begun: %t: %v", c.name, c.begun, err)
		}
		if err == nil {
			continue
		}
		name := strings.TrimSuffix(c.name, "/")
		if errkind.Of(t.Context(), err) != errkind.Usage || !strings.Contains(err.Error(), far) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "create the subdirectory generations in it") {
			t.Errorf("%s: %v", c.name, err)
		}
		if left, err := os.ReadDir(far); err != nil || len(left) != 1 {
			t.Errorf("%s: what was refused has written %v, %v", c.name, left, err)
		}
	}
}
