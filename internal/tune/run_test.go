package tune

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"aibox/configs"
)

// TestTrialsHaveTheJobThatIsSearched checks that the trials of a search have the date and the text of the job
// file with which it began, although midnight has passed and the file has been edited or is gone.
func TestTrialsHaveTheJobThatIsSearched(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job.yaml")
	text := "model: {kind: lr}\ndata: {train: ['logs/{{date}}.csv'], format: csv, columns: [{name: y, role: label}, {name: a, role: sparse}]}\noutput: {model_dir: m}\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	evening := func() time.Time { return time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC) }
	set := []string{"timezone=UTC"}
	job, err := configs.Load(file, configs.LoadOptions{Set: set, Now: evening})
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{Options: Options{Job: job, Load: configs.LoadOptions{Set: set}, ValidationFraction: 0.1, MaxEpochs: 1}, text: []byte(text)}
	for _, edited := range []string{text + "training: {batch_size: 7}\n", ""} {
		if err := os.WriteFile(file, []byte(edited), 0o666); err != nil {
			t.Fatal(err)
		}
		if edited == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.jobOf(Trial{ID: 1}, "dir", 1000)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"logs/2026-11-20.csv"}; !slices.Equal(got.Data.Train, want) || got.Training.BatchSize != job.Training.BatchSize {
			t.Errorf("a trial reads %v in mini-batches of %d, want %v and %d", got.Data.Train, got.Training.BatchSize, want, job.Training.BatchSize)
		}
	}
}

// TestForget checks that forgetting a search deletes its trials and its journal and nothing else, and
// nothing at all where there was no search.
func TestForget(t *testing.T) {
	t.Parallel()
	for _, searched := range []bool{false, true} {
		dir := t.TempDir()
		kept := []string{"trial-logs", "trial-1-2-3"}
		for _, name := range append([]string{"trial-3-0"}, kept...) {
			if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if searched {
			if err := os.WriteFile(filepath.Join(dir, JournalName), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		} else {
			kept = append(kept, "trial-3-0")
		}
		r := &runner{Options: Options{Dir: dir}}
		if err := r.forget(); err != nil {
			t.Fatal(err)
		}
		var left []string
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
		slices.Sort(kept)
		if !slices.Equal(left, kept) {
			t.Errorf("with a search %v: %v is left, want %v", searched, left, kept)
		}
	}
	if err := (&runner{Options: Options{Dir: filepath.Join(t.TempDir(), "absent")}}).forget(); err != nil {
		t.Error(err)
	}
}
