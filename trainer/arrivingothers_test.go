package trainer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aibox/configs"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// TestResumesBesideModelThatNeverArrives has a generation in the model directory whose files have
// not all arrived and never will, since the remote directory no longer has them. A run that has
// started from another model must be resumed all the same.
func TestResumesBesideModelThatNeverArrives(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: trains large tables many times; not in short mode")
	}
	set := []string{"training.warm_start=latest", everyPass, "output.keep_generations=3"}
	nights := func() *configs.Job {
		j := withBuckets(t, append(slices.Clip(set), "output.remote="+t.TempDir())...)
		train(t, j)
		train(t, j)
		return j
	}
	left := nights()
	want := outcome(t, left, train(t, left))

	gone := t.TempDir()
	other := withBuckets(t, append(slices.Clip(set), "output.remote="+gone)...)
	train(t, other)
	lost(t, other)
	inBackground(t, func(*remote.Arriving) {})
	crashAfter(t, other, 1, func(r *run) { r.snapshots.wait() })
	lacks := recordOf(t, other.Output.ModelDir)
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	inBackground(t, (*remote.Arriving).Start)

	j := nights()
	crashAfter(t, j, 2, func(r *run) { r.snapshots.wait() })
	// Files of that model come beside those of the first one here, which nobody reads.
	files, err := filepath.Glob(filepath.Join(filepath.Dir(lacks), "*.bucket"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files arrive: %v", len(files), err)
	}
	for _, from := range append(files, lacks) {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(j.Output.ModelDir, "gen-000001", "table", filepath.Base(from)), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if list := modeldir.Arriving(j.Output.ModelDir); len(list) != 1 {
		t.Fatalf("%d models arrive, want 1", len(list))
	}
	s := train(t, j)
	if len(s.Resumed) != 1 || s.Arrival != nil {
		t.Errorf("resumed %v, arrived %+v", s.Resumed, s.Arrival)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}
