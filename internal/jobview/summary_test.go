package jobview

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"aibox/pipeline"
	"aibox/trainer/metrics"
	"aibox/trainer/report"
)

func measured(examples int64, groupAUC float64, groups int) metrics.Report {
	r := metrics.Report{
		Examples: examples, AUC: 0.785432, AUCExact: true, LogLoss: 0.401234, NormalizedEntropy: 0.812346,
		COPC: 1.01234, GroupAUC: metrics.Value(groupAUC), BaseRate: 0.2,
	}
	r.GroupsUsed = groups
	return r
}

func TestSummary(t *testing.T) {
	first, second := measured(50, math.NaN(), 0), measured(50, math.NaN(), 0)
	second.AUC = metrics.Value(math.NaN())
	s := &report.Summary{
		ModelKind: "dlrm", Examples: 2000, ElapsedSeconds: 1.25, ExamplesPerSec: 4000, KeptEpoch: 1, Steps: 10,
		TrainRows: report.Reading{Good: 1000, Bad: 3, BadByReason: map[string]int64{"wrong column count": 2, "label": 1}, Dropped: 7},
		EvalRows:  report.Reading{Good: 50}, Eval: &first, Limiting: "RE", Bound: "reading: do this", DenseParameters: 99, Digest: "abcd",
		PeakMemoryBytes: 3 << 20, ExpiredRows: 12,
		Epochs: []report.Epoch{{Epoch: 1, Online: measured(1000, math.NaN(), 0), Eval: &first}, {Epoch: 2, Online: measured(1000, math.NaN(), 0), Eval: &second}},
		Files:  map[string]string{"model": "m", "summary": "m/summary.json"},
	}
	var out bytes.Buffer
	if err := PrintSummary(&out, s); err != nil {
		t.Fatal(err)
	}
	wantLines(t, strings.Split(strings.TrimSpace(out.String()), "\n"), `
dlrm trained on 2000 examples in 1.2 s (4000 examples/s while training); kept: epoch 1, step 10

              metrics  examples      AUC  log loss  norm. ent.    COPC  base rate
       epoch 1 online      1000  0.78543   0.40123     0.81235  1.0123    0.20000
  epoch 1 eval (kept)        50  0.78543   0.40123     0.81235  1.0123    0.20000
       epoch 2 online      1000  0.78543   0.40123     0.81235  1.0123    0.20000
         epoch 2 eval        50        -   0.40123     0.81235  1.0123    0.20000

the last epoch, which an earlier process trained, was limited by RE

bounded by    reading: do this
train rows    1000 good, 3 bad (label 1, wrong column count 2), 7 negatives left out by sampling
eval rows     50 good, 0 bad
table         0 rows, 0 B in memory
expired       12 rows, after the metrics above were computed: "aibox eval" measures the model without these rows
dense part    99 parameters
peak memory   3.0 MiB
digest        abcd
model         m
summary       m/summary.json
`)
	first = measured(50, 0.61234, 5)
	s.Epochs[1].Measured = []pipeline.StageStats{{Name: "RE", Items: 4}}
	out.Reset()
	if err := PrintSummary(&out, s); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out.Bytes(), []byte("group AUC")) || !bytes.Contains(out.Bytes(), []byte("0.61234")) {
		t.Errorf("no group AUC:\n%s", out.String())
	}
	if !bytes.Contains(out.Bytes(), []byte("stages of the last epoch (AIBox, Table 1); limited by RE\n  stage  items")) {
		t.Errorf("no table of stages:\n%s", out.String())
	}
}

func TestDayText(t *testing.T) {
	if have := DayText(20777, true); have != "2026-11-20" {
		t.Errorf("day 20777 is %s", have)
	}
	if have := DayText(3, false); have != "run 3" {
		t.Errorf("third run is %s", have)
	}
}

// TestSummaryOfAnInterruptedRun: it says what snapshots cost, and where the run went on.
func TestSummaryOfAnInterruptedRun(t *testing.T) {
	var out bytes.Buffer
	snapshotText(&out, &report.Summary{})
	if out.Len() > 0 {
		t.Errorf("of a run without snapshots: %s", out.String())
	}
	snapshotText(&out, &report.Summary{
		Snapshots: report.Snapshots{Taken: 3, Failed: 1, StallSeconds: 0.25, WriteSeconds: 2, Bytes: 3 << 20},
		Resumed:   []report.Resumption{{Epoch: 1, Step: 10}, {Epoch: 2, Step: 30}},
	})
	const want = `snapshots     3 taken while training, 3.0 MiB, for which training waited 0.2 s; 1 failed
interrupted   2 times; last resumed after step 30, in epoch 2
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}
