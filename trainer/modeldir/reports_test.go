package modeldir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReportsSurviveACrash ends a run at every point between the instant at which its model is
// committed and the end of Commit. The next run must find the reports and put them in place before
// anything is deleted, whether it makes a model or not.
func TestReportsSurviveACrash(t *testing.T) {
	names := []string{"metrics.jsonl", "summary.json", "tensorboard/events"}
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(dir, what, want string) {
		t.Helper()
		for _, name := range names {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s: %s holds %q, %v, want %q", what, name, got, err, want)
			}
		}
	}
	run := func(dir, text string) *Writer {
		t.Helper()
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			put(w.Report(name), text)
		}
		m := &Manifest{Dense: DenseName(1), Step: 1}
		if err := w.SaveDense(m.Dense, nil); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(m, nil, nil); err != nil {
			t.Fatal(err)
		}
		return w
	}
	for published := range len(names) + 1 {
		dir := t.TempDir()
		w := run(dir, "first")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		check(dir, "first run", "first")

		// The second run's process ends with some reports in place.
		w = run(dir, "second")
		for _, name := range names[published:] {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil { // it is a link to the second run's
				t.Fatal(err)
			}
			put(filepath.Join(dir, name), "first")
		}
		w.lock.file.Close()

		// The third one makes no model.
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		check(dir, "after a crash", "second")
		put(w.Report("summary.json"), "third")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		check(dir, "after a run that failed", "second")
		if left, _ := filepath.Glob(filepath.Join(dir, "gen-*")); len(left) != 1 {
			t.Errorf("generations left: %v", left)
		}
	}
}
