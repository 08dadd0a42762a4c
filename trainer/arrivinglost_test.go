package trainer

import (
	"fmt"
	"path/filepath"
	"testing"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/remote"
)

// TestArrivingTableLosesDirectory loses each directory of a table whose files have not all arrived
// from snapshots.remote. The next process fetches what is lost, whichever directory it was, in both
// modes of recovery, and makes the model of a run that was left alone.
func TestArrivingTableLosesDirectory(t *testing.T) {
	left := withBuckets(t)
	want := outcome(t, left, train(t, left))
	ways := []string{"new disk", "unreadable", "emptied", "not mounted"}
	for i := range 2 {
		for m, mode := range []string{configs.RecoveryFull, configs.RecoveryPartial} {
			for w, way := range ways {
				if !testseed.Fresh() && w != 2*m+i || testing.Short() && i != m {
					continue // each way once
				}
				t.Run(fmt.Sprintf("%d/%s/%s", i, mode, way), func(t *testing.T) {
					set := []string{everyPass, "snapshots.remote=" + t.TempDir(), "sparse_table.dirs=[MODEL-a, MODEL-b]", "recovery.mode=" + mode}
					if mode == configs.RecoveryPartial {
						set = append(set, "recovery.max_lost_samples=1")
					}
					j := withBuckets(t, set...)
					if !lostAt(t, j, 14, true) {
						t.Fatal("there were not so many passes")
					}
					inBackground(t, func(*remote.Arriving) {})
					crashAfter(t, j, 1, func(r *run) {
						if s := r.arriving.Stats(); s.TotalBytes == 0 || s.WholeSeconds != 0 {
							t.Errorf("%+v: the test shows nothing", s)
						}
						r.snapshots.wait()
					})
					if n := records(t, j.SparseTable.Dirs...); n != 2 {
						t.Errorf("%d records of what has to arrive, want one in each directory", n)
					}
					lose(t, j, i, way)
					inBackground(t, (*remote.Arriving).Start)
					s, said := trainAloud(t, j)
					diskfault.Inject(nil)
					got := outcome(t, j, s)
					got.compare(t, &want)
					if len(s.Recoveries) != 1 || s.Recoveries[0].Mode != configs.RecoveryFull || s.Recoveries[0].From != j.Snapshots.Remote {
						t.Errorf("%+v\n%s", s.Recoveries, said)
					}
					if names, _ := filepath.Glob(filepath.Join(j.SparseTable.Dirs[1-i], "*", sparsetable.ArrivingName+"*")); len(names) > 0 {
						t.Errorf("left are %v", names)
					}
				})
			}
		}
	}
}
