package flow

import (
	"context"
	"slices"
	"testing"
	"time"

	"aibox/gpu"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
)

// noting is an engine that notes how it is called.
type noting struct {
	engine.Engine
	calls []string
}

func (n *noting) Begin(engine.Pass) error    { n.calls = append(n.calls, "begin"); return nil }
func (n *noting) Announce(engine.Pass) error { n.calls = append(n.calls, "announce"); return nil }
func (n *noting) End() error                 { n.calls = append(n.calls, "end"); return nil }

// TestLatePassIsAnnounced checks that a pass that arrives while the one before is being trained is
// announced before that ends, so that rows that both have can stay on the devices. An engine
// without announcements does not wait for the pass, and no engine waits longer than a pass waits
// for the memory of these rows.
func TestLatePassIsAnnounced(t *testing.T) {
	for _, c := range []struct {
		announces, starves bool
		want               []string
	}{
		{true, false, []string{"begin", "train", "train", "announce", "end"}},
		{true, true, []string{"begin", "train", "train", "end"}},
		{false, false, []string{"begin", "train", "train", "end"}},
	} {
		e := new(noting)
		f := &Flow{Stages: Stages{Engine: e, Announces: c.announces, Ranges: gpu.RangerOf(nil)}, Batch: func(*reader.Batch) error {
			e.calls = append(e.calls, "train")
			return nil
		}}
		starved := make(chan struct{}, 1)
		if c.starves {
			starved <- struct{}{}
		}
		w := Pulled{&reader.Pass{Batches: make([]reader.Batch, 2)}, new(sparsetable.WorkingSet)}
		err := f.learn(t.Context(), w, func(patience time.Duration, enough <-chan struct{}) (Pulled, bool) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if patience == 0 {
				return Pulled{}, false
			}
			select {
			case <-enough:
				return Pulled{}, false
			case <-ctx.Done():
				t.Error("it was waited too long")
			case <-time.After(10 * time.Millisecond):
			}
			return w, true
		}, starved, func() {})
		if err != nil || !slices.Equal(e.calls, c.want) {
			t.Errorf("%+v: %v, %v", c, e.calls, err)
		}
	}
}

// TestStarvedPass checks that a pull that has no memory reports that before it waits.
func TestStarvedPass(t *testing.T) {
	p := newPuller(&Stages{Table: &modesOf{}, Limit: new(Limit), Ranges: gpu.RangerOf(nil)}, sparsetable.PullLookup, nil)
	p.warned, p.begun = true, 1
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-p.starved
		cancel()
	}()
	if _, err := p.pin(ctx, &reader.Pass{Keys: make([]uint64, 11)}); err == nil || ctx.Err() == nil {
		t.Error("a pull without memory returns", err)
	}
}
