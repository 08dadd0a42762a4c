package pace

import (
	"testing"
	"time"

	"aibox/configs"
)

// TestUploadInterval checks that with the chosen interval, uploading and training again take less
// time together than with a shorter or a longer one.
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
		p := Uploads{every: configs.RemoteInterval{Auto: true}, failTime: c.fail, share: c.share}
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

// TestUploadIntervalOfPartialRecovery checks that the expected portion of lost samples is the
// allowed one.
func TestUploadIntervalOfPartialRecovery(t *testing.T) {
	j := job(t, "sparse_table={kind: ssd, dirs: [a, b]}", "snapshots.remote=remote", "recovery={mode: partial, max_lost_samples: 0.05, mean_time_between_failures: 100h}")
	snapshots := NewSnapshots(j, nil)
	p := NewUploads(j, &snapshots)
	got := p.interval(time.Minute)
	if expected := got.Hours() / (2 * 2 * 100); got != 20*time.Hour || expected != 0.05 {
		t.Errorf("every %v, so that %v of the samples are lost", got, expected)
	}
}

// TestPartialRecoveryPays checks that the kind of recovery is chosen that takes less of the time.
func TestPartialRecoveryPays(t *testing.T) {
	pays := map[bool]int{}
	for _, most := range []float64{1e-7, 1e-5, 1e-4, 3e-4, 1e-3, 0.1} {
		for _, took := range []time.Duration{time.Second, time.Minute, 20 * time.Minute} {
			for _, fail := range []time.Duration{time.Hour, 28 * time.Hour} {
				p := Uploads{every: configs.RemoteInterval{Auto: true}, failTime: fail, share: 0.5, Partial: time.Duration(2 * most * 2 * float64(fail))}
				save := p.share * took.Seconds()
				full := save/p.Full(took).Seconds() + p.Full(took).Seconds()/2/fail.Seconds()
				want := save/p.Partial.Seconds() > full
				if got := p.FullPays(took); got != want {
					t.Errorf("%g, %v, %v: full recovery pays: %t, want %t", most, took, fail, got, want)
				}
				if want != (p.interval(took) == p.Full(took)) {
					t.Errorf("%g, %v, %v: every %v", most, took, fail, p.interval(took))
				}
				pays[want]++
			}
		}
	}
	if pays[true] == 0 || pays[false] == 0 {
		t.Errorf("%v", pays)
	}
	p := Uploads{every: configs.RemoteInterval{Auto: true}, failTime: time.Hour, share: 0.5, Partial: 1}
	if p.FullPays(0) {
		t.Error("it is chosen before the cost of an upload is known")
	}
	if p.every = (configs.RemoteInterval{Snapshots: 1}); p.FullPays(time.Minute) {
		t.Error("it is chosen where the job says how often to upload")
	}
}

// TestUploadPace checks that the first snapshot is uploaded at once, and later ones as the job
// says.
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
		p := Uploads{every: every, failTime: 10000 * time.Second, share: 1}
		if !p.Due(start, c.took) {
			t.Errorf("%s: the first snapshot is not uploaded", c.every)
		}
		p.Began(start)
		p.skipped = c.skip
		if got := p.Due(start.Add(c.after), c.took); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
