package trainer

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
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
	ways := []string{"new disk", "unreadable", "emptied", "not mounted", "files gone"}
	for i := range 2 {
		for m, mode := range []string{configs.RecoveryFull, configs.RecoveryPartial} {
			for w, way := range ways {
				if !testseed.Fresh() && w%4 != 2*m+i || testing.Short() && i != m {
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

// TestArrivingTableLosesDirectoryWhileTraining loses a directory of a table whose files have not
// all arrived from snapshots.remote, while it is trained and before what lacks there is fetched.
// The job begins again and makes the model of a run that was left alone.
func TestArrivingTableLosesDirectoryWhileTraining(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: trains large tables many times; not in short mode")
	}
	left := withBuckets(t)
	want := outcome(t, left, train(t, left))
	for i, way := range []string{"files gone", "new disk"} {
		if testing.Short() && i > 0 {
			continue
		}
		t.Run(way, func(t *testing.T) {
			j := withBuckets(t, everyPass, "snapshots.remote="+t.TempDir(), "sparse_table.dirs=[MODEL-a, MODEL-b]")
			if !lostAt(t, j, 14, true) {
				t.Fatal("there were not so many passes")
			}
			inBackground(t, func(*remote.Arriving) {})
			lacking := false
			var log syncBuffer
			opts := quiet
			opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			var once sync.Once
			opts.afterPass = func(_ context.Context, r *run) error {
				once.Do(func() {
					lacking = r.arriving.Stats().WholeSeconds == 0
					lose(t, j, i, way)
					startArriving = (*remote.Arriving).Start
				})
				r.arriving.Start()
				return nil
			}
			s, err := Train(t.Context(), j, opts)
			if err != nil || !lacking {
				t.Fatalf("files lacked bytes: %v; %v\n%s", lacking, err, log.String())
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
			if len(s.Recoveries) != 1 || s.Recoveries[0].Mode != configs.RecoveryFull {
				t.Errorf("%+v\n%s", s.Recoveries, log.String())
			}
		})
	}
}
