package trainer

import (
	"fmt"
	"testing"

	"aibox/internal/hdfstest"
	"aibox/internal/testseed"
	"aibox/sparsetable/tabletest"
	"aibox/trainer/remote"
)

// TestTableArrivesFromHDFS simulates the loss of machines, with all that is on their disks, that
// train with snapshots on a real HDFS cluster. Other machines resume while the bucket files of the
// table arrive, also if parts of HDFS fail in the middle of a file, and make the model of an
// undisturbed machine.
func TestTableArrivesFromHDFS(t *testing.T) {
	a := newAway(t)
	t.Run("other machines", func(t *testing.T) {
		j := a.job(t, "/machines")
		if !lostAt(t, j, 12, true) {
			t.Fatal("there were not so many passes")
		}
		inBackground(t, func(*remote.Arriving) {})
		for _, machine := range []bool{false, true, true} {
			crashAfter(t, j, 1, func(r *run) {
				if s := r.arriving.Stats(); s.TotalBytes == 0 || s.ArrivedBytes == 0 || s.WholeSeconds != 0 {
					t.Errorf("%+v: the test shows nothing", s)
				}
				r.snapshots.wait()
			})
			if machine {
				lost(t, j)
			}
		}
		inBackground(t, (*remote.Arriving).Start)
		a.whole(t, j, train(t, j), "/machines")
	})
	t.Run("without patience", func(t *testing.T) {
		// The client of HDFS does not try again: what fetches in the background does.
		j := a.job(t, "/impatient", "data.hdfs.retry_ms=0")
		if !lostAt(t, j, 12, true) {
			t.Fatal("there were not so many passes")
		}
		var o *outage
		opts := quiet
		opts.Logger = heard("files cannot be fetched from the remote directory now", func() { o.over() })
		inBackground(t, func(arriving *remote.Arriving) {
			o = a.nameNodeStops(t, hdfstest.FromDataNode, objectBytes/2)
			arriving.Start()
			<-o.back // training cannot go on meanwhile
		})
		s, err := Train(t.Context(), j, opts)
		if err != nil {
			t.Fatal(err)
		}
		a.whole(t, j, s, "/impatient")
	})
	rng := testseed.Rand(t)
	for range tabletest.Kills(t, 1, 1) {
		for _, part := range []struct {
			name  string
			fails func(*testing.T, hdfstest.Way, int64) *outage
		}{{"DataNode killed", a.dataNodeDies}, {"NameNode stopped", a.nameNodeStops}} {
			for _, demanded := range []bool{false, true} {
				bytes := 1 + rng.Int64N(objectBytes)
				t.Run(fmt.Sprintf("%s at byte %d of what is read %v", part.name, bytes, demanded), func(t *testing.T) {
					j := a.job(t, "/arriving") // it is empty after each test
					if !lostAt(t, j, 12, true) {
						t.Fatal("there were not so many passes")
					}
					var o *outage
					opts := quiet
					opts.Logger = heard(triesAgain, func() { o.over() })
					inBackground(t, func(arriving *remote.Arriving) {
						o = part.fails(t, hdfstest.FromDataNode, bytes)
						if !demanded {
							arriving.Start()
							<-o.down // before training reads anything
							return
						}
						go func() {
							<-o.down
							arriving.Start()
						}()
					})
					s, err := Train(t.Context(), j, opts)
					if err != nil {
						t.Fatal(err)
					}
					a.whole(t, j, s, "/arriving")
				})
			}
		}
	}
}
