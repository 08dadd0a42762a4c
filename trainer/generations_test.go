package trainer

import (
	"os"
	"path/filepath"
	"testing"

	"aibox/trainer/generations"
)

// TestGenerationsListInterruptedRuns checks that a run that can be resumed is listed with its
// progress.
func TestGenerationsListInterruptedRuns(t *testing.T) {
	c, at := interruptedNight(t)
	check := func(models int) {
		t.Helper()
		all, err := generations.List(at + "/m")
		if err != nil || len(all) != models+1 {
			t.Fatalf("%+v, %v", all, err)
		}
		g := all[0]
		if g.Generation != 3 || g.State != generations.Resumable || g.Night != "2026-11-19" || g.StartedFrom != at+"/m@2" || g.Examples == 0 || g.Steps <= g.Examples/64 || g.Bytes == 0 || g.Fault != "" {
			t.Errorf("%+v", g)
		}
	}
	check(2)
	for _, name := range []string{"gen-000001", "gen-000002", "MODEL.json"} {
		if err := os.RemoveAll(filepath.Join(at, "m", name)); err != nil {
			t.Fatal(err)
		}
	}
	check(0)
	if err := os.WriteFile(filepath.Join(at, "m", "gen-000003", "RESUME.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if all, err := generations.List(at + "/m"); err == nil {
		t.Errorf("%+v", all)
	}
	c.starts("2026-11-19", "")
	c.said("damaged")
}
