package cuda_test

import (
	"testing"
	"time"

	"aibox/gpu/kernels"
	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/optim"
)

// copied returns the bytes that devices get and give when a bench has trained all its mini-batches
// so many times, and was exported once.
func (b *bench) copied(devices, times int) (up, down int64) {
	parameters, statistics, network := 0, 0, b.config.Network
	for i, p := range network.Params {
		parameters += len(p.Data)
		for _, s := range b.state.Dense.Slots(i) {
			parameters += len(s)
		}
		if b.dense.Averaging > 0 {
			parameters += len(p.Data)
		}
	}
	for _, n := range network.Norms {
		parameters += len(n.Both)
		statistics += len(n.Both)
	}
	updates := 1 // of all parameters together
	if b.dense.Averaging > 0 {
		updates++
	}
	for i := range b.pass.Batches {
		batch := &b.pass.Batches[i]
		pooled := batch.N * network.Fields * network.RowDim
		inputs := 0
		for _, part := range []int{8, updates * kernels.UpdateBytes, 4 * len(batch.Dense), 4 * len(batch.Labels), 4 * len(batch.Weights)} {
			if devices == 1 && part > 0 { // one copy has all, and each part begins at a multiple of 256
				inputs = (inputs + 255) / 256 * 256
			}
			inputs += part
		}
		inputs += (devices - 1) * (8 + updates*kernels.UpdateBytes)
		up += int64(times * (inputs + 4*pooled))
		down += int64(times * 4 * (2*batch.N + pooled + statistics))
	}
	return up + int64(devices*4*parameters), down + int64(4*parameters)
}

// sums is how many sums over several devices a step takes.
func (b *bench) sums() int { return 1 + 3*len(b.config.Network.Norms) }

// TestStats: devices copy what a job has to copy and no more, whether it runs as graphs or not;
// they are busy some of the time; and only several of them send something to one another and need
// time for sums.
func TestStats(t *testing.T) {
	seed := testseed.Of(t)
	averaging := adam
	averaging.Averaging = 0.9
	for _, norm := range []bool{false, true} {
		for _, dense := range []optim.DenseConfig{adam, averaging} {
			for n := 1; n <= 3; n++ {
				b := onDevices(t, setup{spec: deep(norm), dense: dense, seed: seed, batches: 5, examples: 40}, n, seed+uint64(n))
				const times = 4 // so that graphs run
				for range times {
					b.trainFirst(t, b.batches)
				}
				b.end(t)
				stats := b.engine.(*cuda.Engine).Stats()
				if len(stats) != n {
					t.Fatalf("%d devices, want %d", len(stats), n)
				}
				var up, down int64
				for d := range stats {
					s := &stats[d]
					up, down = up+s.UploadedBytes, down+s.DownloadedBytes
					if s.Number != d || s.Name != "emulated" || s.MemoryBytes != 1<<30 {
						t.Errorf("device %d: %+v", d, s)
					}
					if least := b.engine.(*cuda.Engine).DeviceBytes(); s.UsedBytes < least*9/10 || s.UsedBytes > 2*least || s.PeakBytes < s.UsedBytes {
						t.Errorf("%d devices: %d bytes are used, at most %d, of which the engine has about %d", n, s.UsedBytes, s.PeakBytes, least)
					}
					// Operations of other streams take time in which this one waits.
					if busy := s.Busy(); s.SampledSteps != 1 || !(busy > 0 && busy < 1) || s.Step() <= 0 {
						t.Errorf("%d devices: busy %v in %d steps of %v", n, busy, s.SampledSteps, s.Step())
					}
					// An operation takes a microsecond. Before each sum its beginning is marked,
					// and its end after it.
					least := time.Duration(2*b.sums()) * time.Microsecond
					if got := s.Sum(); n == 1 && got != 0 || n > 1 && (got < least || got > s.Step()) {
						t.Errorf("%d devices: %v for sums of a step of %v, want at least %v", n, got, s.Step(), least)
					}
					if (s.BetweenBytes > 0) != (n > 1) {
						t.Errorf("%d devices: %d bytes sent", n, s.BetweenBytes)
					}
				}
				wantUp, wantDown := b.copied(n, times)
				if up != wantUp || down != wantDown {
					t.Errorf("%d devices, norm %v: %d bytes up and %d down, want %d and %d", n, norm, up, down, wantUp, wantDown)
				}
			}
		}
	}
}

// TestCountsOfGraphs: a step has as many launches and products whether its operations are enqueued
// one by one or as graphs.
func TestCountsOfGraphs(t *testing.T) {
	for n := 1; n <= 2; n++ {
		for _, norm := range []bool{false, true} {
			b := onDevices(t, setup{spec: deep(norm), dense: adam, seed: testseed.Of(t), batches: 2, examples: 12}, n, 0)
			e := b.engine.(*cuda.Engine)
			var each []cuda.DeviceStats // of a round of two steps
			before := e.Stats()[n-1]
			for range 5 { // graphs are made in the third one
				b.trainFirst(t, 2)
				now := e.Stats()[n-1]
				each = append(each, cuda.DeviceStats{Launches: now.Launches - before.Launches, Products: now.Products - before.Products,
					UploadedBytes: now.UploadedBytes - before.UploadedBytes, DownloadedBytes: now.DownloadedBytes - before.DownloadedBytes, BetweenBytes: now.BetweenBytes - before.BetweenBytes})
				before = now
			}
			for i := range each {
				if each[i] != each[0] || each[i].Launches == 0 || each[i].Products == 0 {
					t.Errorf("%d devices, norm %v: round %d has %+v, the first one %+v", n, norm, i, each[i], each[0])
				}
			}
			b.end(t)
		}
	}
}

// TestLogicalDevices: several devices on a physical one have counters of their own.
func TestLogicalDevices(t *testing.T) {
	seed := testseed.Of(t)
	b := newBench(t, setup{spec: deep(true), dense: adam, seed: seed, batches: 6, examples: 20})
	e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: platform(2, seed), Devices: []int{1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = e
	b.begin(t)
	b.trainFirst(t, b.batches)
	b.end(t)
	s := e.Stats()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for d := range s {
		if s[d].Number != 1 || s[d].UploadedBytes == 0 || s[d].Launches == 0 || s[d].Busy() == 0 || s[d].Sum() == 0 || s[d].BetweenBytes != s[0].BetweenBytes {
			t.Errorf("%d: %+v", d, s[d])
		}
	}
	if least := 2 * e.DeviceBytes(); s[0].UsedBytes != s[1].UsedBytes || s[0].UsedBytes < least {
		t.Errorf("%d and %d bytes of a device are used", s[0].UsedBytes, s[1].UsedBytes)
	}
}

// TestSamples: of many steps, few are measured, and only such as follow another one of training.
func TestSamples(t *testing.T) {
	seed := testseed.Of(t)
	b := onDevices(t, setup{spec: deep(false), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, seed: seed, batches: 36, examples: 2}, 2, seed)
	e := b.engine.(*cuda.Engine)
	sampled := func() int64 { return e.Stats()[1].SampledSteps }
	for i := range 4 {
		for _, do := range []func(engine.Batch, engine.Done) error{e.Train, e.Infer} {
			if err := do(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := sampled(); n != 0 {
		t.Errorf("%d steps were measured between others that infer", n)
	}
	b.end(t)
	b.begin(t)
	b.trainFirst(t, 36)
	if n := sampled(); n != 2 { // steps 6 and 37
		t.Errorf("%d of 40 steps were measured, want 2", n)
	}
	b.end(t)
	before := e.Stats()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if after := e.Stats(); after[0] != before[0] || after[1] != before[1] {
		t.Errorf("after Close %+v, before %+v", after, before)
	}
}

// TestSamplesOfHeldRows: with rows on the devices, whose results are late, steps are measured, too.
func TestSamplesOfHeldRows(t *testing.T) {
	seed := testseed.Of(t)
	for n := 1; n <= 2; n++ {
		b := onDevices(t, setup{spec: deep(true), dense: adam, held: true, seed: seed, batches: 6, examples: 12}, n, seed)
		for range 7 {
			b.trainFirst(t, b.batches)
			b.end(t)
			b.begin(t)
		}
		b.end(t)
		for _, s := range b.engine.(*cuda.Engine).Stats() {
			if s.SampledSteps != 2 || s.Busy() <= 0 || s.Busy() >= 1 || (s.Sum() > 0) != (n > 1) || s.RowsWait <= 0 || s.UploadedBytes == 0 || s.DownloadedBytes == 0 || s.BetweenBytes == 0 && n > 1 {
				t.Errorf("%d devices: %+v", n, s)
			}
		}
	}
}

// TestSamplesNoGarbage wants steps that are measured to allocate nothing.
func TestSamplesNoGarbage(t *testing.T) {
	for n := 1; n <= 2; n++ {
		b := newBench(t, setup{spec: deep(true), dense: adam, seed: testseed.Of(t), batches: 4, examples: 20})
		e := b.open(t, nothing{new(calls)}, devices(n))
		b.begin(t)
		rounds := func() {
			for range 8 { // a step is measured
				b.trainFirst(t, 4)
			}
		}
		rounds()
		before := e.Stats()[0].SampledSteps
		if garbage := testing.AllocsPerRun(10, rounds); garbage > 0 && !raceEnabled {
			t.Errorf("%d devices: %v allocations in 32 steps", n, garbage)
		}
		if got := e.Stats()[0].SampledSteps - before; got < 10 {
			t.Errorf("%d steps were measured", got)
		}
	}
}

// trainFirst trains the first mini-batches without a look at the results.
func (b *bench) trainFirst(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		if err := b.engine.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}
