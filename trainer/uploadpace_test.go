package trainer

import (
	"context"
	"testing"
	"time"

	"aibox/configs"
)

// TestUploadInterval: with the interval that is chosen, uploading and training again take
// less time than with a shorter or a longer one.
func TestUploadInterval(t *testing.T) {
	for _, c := range []struct {
		share      float64
		took, fail time.Duration
		want       time.Duration
	}{
		{1, 50 * time.Second, 10000 * time.Second, 1000 * time.Second},
		{0.5, 100 * time.Second, 10000 * time.Second, 1000 * time.Second},
		{0.5, time.Second, 28 * time.Hour, 317 * time.Second},
		{1, 0, time.Hour, 0},
	} {
		p := uploadPace{every: configs.RemoteInterval{Auto: true}, failTime: c.fail, share: c.share}
		got := p.interval(c.took)
		if d := got - c.want; d < -time.Second || d > time.Second {
			t.Errorf("%+v: %v, want %v", c, got, c.want)
		}
		overhead := func(save time.Duration) float64 {
			return c.share*c.took.Seconds()/save.Seconds() + save.Seconds()/2/c.fail.Seconds()
		}
		if got > 0 && (overhead(got) > overhead(got*9/10) || overhead(got) > overhead(got*11/10)) {
			t.Errorf("%+v: %v is not the best", c, got)
		}
	}
}

// TestUploadIntervalOfPartialRecovery: the portion of lost samples that is expected is the one
// that is allowed.
func TestUploadIntervalOfPartialRecovery(t *testing.T) {
	r := &run{job: job(t, "fm", onTwoDisks("recovery.mode=partial", "recovery.max_lost_samples=0.05", "recovery.mean_time_between_failures=100h")...)}
	r.snapshots = newSnapshots(r)
	p := newUploadPace(r)
	got := p.interval(time.Minute)
	if expected := got.Hours() / (2 * 2 * 100); got != 20*time.Hour || expected != 0.05 {
		t.Errorf("every %v, so that %v of the samples are lost", got, expected)
	}
}

// TestPartialRecoveryPays: the cheaper kind of recovery is chosen, by what both take of the time.
func TestPartialRecoveryPays(t *testing.T) {
	pays := map[bool]int{}
	for _, most := range []float64{1e-7, 1e-5, 1e-4, 3e-4, 1e-3, 0.1} {
		for _, took := range []time.Duration{time.Second, time.Minute, 20 * time.Minute} {
			for _, fail := range []time.Duration{time.Hour, 28 * time.Hour} {
				p := uploadPace{every: configs.RemoteInterval{Auto: true}, failTime: fail, share: 0.5, partial: time.Duration(2 * most * 2 * float64(fail))}
				save := p.share * took.Seconds()
				full := save/p.full(took).Seconds() + p.full(took).Seconds()/2/fail.Seconds()
				want := save/p.partial.Seconds() > full
				if got := p.fullPays(took); got != want {
					t.Errorf("%g, %v, %v: full recovery pays: %t, want %t", most, took, fail, got, want)
				}
				if want != (p.interval(took) == p.full(took)) {
					t.Errorf("%g, %v, %v: every %v", most, took, fail, p.interval(took))
				}
				pays[want]++
			}
		}
	}
	if pays[true] == 0 || pays[false] == 0 {
		t.Errorf("%v", pays)
	}
	p := uploadPace{every: configs.RemoteInterval{Auto: true}, failTime: time.Hour, share: 0.5, partial: 1}
	if p.fullPays(0) {
		t.Error("it is chosen before the cost of an upload is known")
	}
	if p.every = (configs.RemoteInterval{Snapshots: 1}); p.fullPays(time.Minute) {
		t.Error("it is chosen where the job says how often to upload")
	}
}

// TestUploadPace: the first snapshot is uploaded at once, and those after it as the job says.
func TestUploadPace(t *testing.T) {
	start := time.Unix(1e9, 0)
	for _, c := range []struct {
		every string
		after time.Duration
		took  time.Duration
		skip  int64
		want  bool
	}{
		{"auto", 999 * time.Second, 50 * time.Second, 5, false},
		{"auto", 1001 * time.Second, 50 * time.Second, 0, true},
		{"auto", time.Second, 0, 0, true}, // what it costs is not known, since it has failed
		{"10m", 599 * time.Second, 0, 9, false},
		{"10m", 600 * time.Second, 0, 0, true},
		{"1 snapshot", 0, time.Hour, 0, true},
		{"3 snapshots", time.Hour, time.Hour, 1, false},
		{"3 snapshots", 0, time.Hour, 2, true},
	} {
		every, err := configs.ParseRemoteInterval(c.every)
		if err != nil {
			t.Fatal(err)
		}
		p := uploadPace{every: every, failTime: 10000 * time.Second, share: 1}
		if !p.due(start, c.took) {
			t.Errorf("%s: the first snapshot is not uploaded", c.every)
		}
		p.began(start)
		p.skipped = c.skip
		if got := p.due(start.Add(c.after), c.took); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestUploadsFewer: of the snapshots of a run, the first is uploaded, then every third, and,
// when the run is told to stop, the last one, from which another machine goes on.
func TestUploadsFewer(t *testing.T) {
	set := onSSD("pipeline.batches_per_pass=4", "training.epochs=2")
	left := job(t, "fm", set...)
	want := outcome(t, left, train(t, left))
	j := job(t, "fm", append(set, everyPass, "snapshots.remote="+t.TempDir(), "snapshots.remote_every=3 snapshots")...)
	ctx, stop := context.WithCancel(t.Context())
	opts := quiet
	passes, last := 0, int64(0)
	var steps []int64 // that were uploaded
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		if !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		if s := r.snapshots.uploads.Summary(); s.Step > 0 && (len(steps) == 0 || steps[len(steps)-1] != s.Step) {
			steps = append(steps, s.Step)
		}
		last = r.state.Engine.Step
		if passes++; passes == 9 {
			stop()
		}
		return nil
	}
	if _, err := Train(ctx, j, opts); err == nil {
		t.Fatal("it was not stopped")
	}
	if len(steps) != 3 || steps[0] != 4 || steps[1] != 16 || steps[2] != 28 {
		t.Errorf("the snapshots of these steps were uploaded: %v", steps)
	}
	lost(t, j)
	s := train(t, j)
	if len(s.Resumed) != 1 || s.Resumed[0].Step != last {
		t.Errorf("went on at %+v, but was stopped at %d", s.Resumed, last)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}
