package trainer

import (
	"slices"
	"strings"
	"testing"

	"aibox/internal/hdfstest"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/transfer"
)

// TestRestoreFromHDFS restores a model from a real HDFS cluster parts of which fail in the middle
// of a bucket file, while the model is already usable and the rest of it is fetched.
func TestRestoreFromHDFS(t *testing.T) {
	t.Parallel() // it waits for the cluster most of the time
	a := &away{Cluster: proxied(t)}
	j := withBuckets(t, slices.Concat(patient, []string{"sparse_table.dirs=[MODEL-a, MODEL-b]", "output.remote=" + a.URI("/model")})...)
	s := train(t, j)
	if s.Published == nil {
		t.Fatal(s.NotPublished)
	}
	for _, c := range []struct {
		name    string
		fails   func(*testing.T, hdfstest.Way, int64) *outage
		patient bool
	}{
		{"DataNode killed", a.dataNodeDies, true},
		{"NameNode stopped", a.nameNodeStops, true},
		{"NameNode stopped, no patience", a.nameNodeStops, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out *outage
			o := restoringTo(t, j.Output.Remote)
			o.HDFS = j.Data.HDFS
			o.Logger = heard(triesAgain, func() { out.over() })
			whenUsable(&o, func() {
				if out == nil {
					out = c.fails(t, hdfstest.FromDataNode, objectBytes/2)
				}
			})
			if !c.patient {
				o.HDFS.RetryMs = 0
				if _, err := transfer.Restore(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the same command fetches the rest") {
					t.Fatalf("restored without a NameNode: %v", err)
				}
				if records(t, o.Dirs...) == 0 {
					t.Error("nothing says that files have not arrived")
				}
				o.HDFS = j.Data.HDFS // the NameNode is started when this call waits for it
			}
			r, err := transfer.Restore(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if out == nil || !out.happened() || r.Moved == 0 {
				t.Errorf("%+v", r)
			}
			in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet)
			if err != nil || in.Digest != s.Digest || len(in.Faults) > 0 || records(t, append(o.Dirs, o.To)...) > 0 {
				t.Errorf("%+v, want digest %s: %v", in, s.Digest, err)
			}
		})
	}
}
