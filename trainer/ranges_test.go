package trainer

import (
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/internal/testseed"
)

// TestRangesOfAJob checks that a profiler of devices sees the stages of the pipeline, the snapshots
// and the steps, each as a range that ends.
func TestRangesOfAJob(t *testing.T) {
	seed := testseed.Of(t)
	p := devices(seed, 1)
	s, err := trainOn(t, job(t, "dlrm", append(slices.Clone(onDevices), "snapshots.every=1 pass")...), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	began, open := map[string]int{}, map[gpu.Range]string{}
	for _, m := range p.Ranges() {
		if m.End {
			delete(open, m.Range)
			continue
		}
		began[m.Name]++
		open[m.Range] = m.Name
	}
	if len(open) > 0 {
		t.Errorf("%v have not ended", open)
	}
	stages := s.Epochs[0].Stages
	passes := int(stages[len(stages)-1].Items)
	if began["train"] != passes || began["step"] != int(s.Steps) || began["evaluate"] == 0 || began["infer"] == 0 {
		t.Errorf("of %d passes and %d steps: %v", passes, s.Steps, began)
	}
	if began["pull"] != passes+began["evaluate"] || began["read"] < began["pull"] {
		t.Errorf("of %d passes: %v", passes, began)
	}
	if n := began["snapshot"]; n == 0 || n != began["write snapshot"] || n != int(s.Snapshots.Taken) {
		t.Errorf("of %d snapshots: %v", s.Snapshots.Taken, began)
	}
}
