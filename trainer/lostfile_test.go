package trainer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/errkind"
)

// TestModelLosesFile checks that a model that has lost a file of its own directory, which also has
// its table, is restored from output.remote by the next night, which makes the same model. If
// output.remote does not have that very model, the night ends with an error.
func TestModelLosesFile(t *testing.T) {
	for _, kind := range []string{"memory", "ssd"} {
		files := []string{"dense-*", "statistics.json", "job.yaml", "table/snapshot-*.rows"}
		set := []string{"training.epochs=1"}
		if kind == "ssd" {
			files = []string{"dense-*", "table/*.delta", "table/catalog/MANIFEST-*", "table/catalog/*.sst"}
			set = onTwoDisks("sparse_table.dirs=[]", "snapshots.every=none", "training.epochs=1")
		}
		home := newMachine(t, "", set...)
		home.night("2026-11-21")
		want := home.night("2026-11-22").Digest
		for i, pattern := range files {
			t.Run(kind+"/"+filepath.Base(pattern), func(t *testing.T) {
				m := newMachine(t, "file://"+t.TempDir()+"/remote", set...)
				m.night("2026-11-21")
				m.removeFiles(t, filepath.Join("model", "gen-*", pattern))
				if s := m.night("2026-11-22"); s.Digest != want || s.WarmStart != filepath.Join(m.at, "model@2") {
					t.Errorf("digest %s, want %s; started from %s", s.Digest, want, s.WarmStart)
				}
				m.said("files of the model to start from are missing or damaged")
				m.said("the model to start from is restored")
				if i > 0 {
					return
				}
				m.night("2026-11-23", `output.remote=""`)
				m.removeFiles(t, filepath.Join("model", "gen-*", pattern))
				if _, err := m.train("2026-11-24"); errkind.Of(t.Context(), err) != errkind.IO {
					t.Errorf("a model that is not in output.remote: %v", err)
				}
				m.said("output.remote has no complete copy of that model")
			})
		}
	}
}

// TestModelLosesCatalog checks a night whose start lacks a file of the table's catalog, of which
// there is no copy. The night ends at once with an error that says what is missing and what to do,
// since the table cannot be reconstructed from what is left.
func TestModelLosesCatalog(t *testing.T) {
	m := newMachine(t, "", onTwoDisks("sparse_table.dirs=[]", "training.epochs=1")...)
	m.night("2026-11-21")
	m.removeFiles(t, filepath.Join("model", "gen-*", "table", "catalog", "MANIFEST-*"))
	_, err := m.train("2026-11-22")
	if errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "MANIFEST-") || !strings.Contains(err.Error(), "is missing there, and every run") {
		t.Errorf("the night ended with %v", err)
	}
	if strings.Contains(m.log.String(), "starts again") {
		t.Errorf("the job began again:\n%s", m.log.String())
	}
}

// removeFiles deletes the files of a pattern.
func (m *machine) removeFiles(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(m.at, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}
