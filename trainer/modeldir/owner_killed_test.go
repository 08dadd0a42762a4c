package modeldir

import (
	"path/filepath"
	"testing"

	"aibox/internal/disk"
	"aibox/internal/testseed"
)

// TestKilledWhileTableIsPlaced ends a run before every change of files by which it makes the
// directories of its table. The next run must delete those that exist.
func TestKilledWhileTableIsPlaced(t *testing.T) {
	rng := testseed.Rand(t)
	for n, done := 0, false; !done; n++ {
		at := t.TempDir()
		model, ssds := filepath.Join(at, "model"), []string{filepath.Join(at, "ssd0"), filepath.Join(at, "ssd1")}
		w, err := Create(model)
		if err != nil {
			t.Fatal(err)
		}
		where := killAt(rng, n, func() {
			if _, err := w.PlaceTable(ssds); err != nil {
				t.Fatal(err)
			}
		})
		done = where == ""
		died(t, w)
		if w, err = Create(model); err != nil {
			t.Fatal(err)
		}
		for _, ssd := range ssds {
			if left := w.Leftovers(); len(left) > 0 || !disk.Gone(ssd) && len(entries(t, ssd)) > 0 {
				t.Errorf("killed before %s: left over: %v", where, left)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if done && n < 4 {
			t.Errorf("files are changed %d times", n)
		}
	}
}
