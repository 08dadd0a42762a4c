package runstate

import (
	"testing"

	"aibox/trainer/flow"
	"aibox/trainer/report"
)

// TestSpent checks that the times that several processes take for an epoch are added.
func TestSpent(t *testing.T) {
	a := Spent{Seconds: 10, Processor: 20, Stages: []report.Stage{{Name: flow.StageRead, Items: 5, BusySeconds: 2, StarvedSeconds: 8, QueueMean: 1, QueueCapacity: 4}}}
	b := Spent{Seconds: 30, Processor: 10, Stages: []report.Stage{{Name: flow.StageRead, Items: 7, BusySeconds: 20, BlockedSeconds: 10, QueueMean: 3, QueueCapacity: 4}}}
	sum := a.Plus(b)
	if sum.Seconds != 40 || sum.Processor != 30 || len(sum.Stages) != 1 {
		t.Fatalf("%+v", sum)
	}
	if want := (report.Stage{Name: flow.StageRead, Items: 12, BusySeconds: 22, StarvedSeconds: 8, BlockedSeconds: 10, QueueMean: 2.5, QueueCapacity: 4}); sum.Stages[0] != want {
		t.Errorf("%+v, want %+v", sum.Stages[0], want)
	}
	if got := a.Plus(Spent{Seconds: 1}); len(got.Stages) != 1 || got.Stages[0].Items != 5 {
		t.Errorf("%+v", got)
	}
}
