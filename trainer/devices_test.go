package trainer

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels/twin"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

// devices returns emulated devices for a run.
func devices(seed uint64, n int) *emulated.Platform { return smallDevices(seed, n, 64<<20) }

// smallDevices returns devices with that many bytes of memory each.
func smallDevices(seed uint64, n int, bytes int64) *emulated.Platform {
	return emulated.New(emulated.Options{Devices: emulated.Devices(n, bytes), Images: map[string]emulated.Kernels{"aibox": twin.Kernels}, Seed: seed})
}

// onDevices are the settings of a short job that trains on devices; it is short because emulated
// devices are slow.
var onDevices = []string{"engine.kind=cuda", "training.max_examples=700"}

// trainOn runs a job on devices.
func trainOn(t *testing.T, j *configs.Job, p *emulated.Platform, more func(*Options)) (*report.Summary, error) {
	t.Helper()
	o := quiet
	o.platform = p
	if more != nil {
		more(&o)
	}
	s, err := Train(context.Background(), j, o)
	if h := p.Err(); h != nil {
		t.Fatal(h)
	}
	if err == nil && s.Digest == "" {
		s.Digest = testjobs.Digest(t, j)
	}
	return s, err
}

// TestDevicesTrainAllModels checks that one line is enough to train a job on devices instead of the
// CPU. The models differ only in the last bits of sums, and each of them is the same in every run.
func TestDevicesTrainAllModels(t *testing.T) {
	seed := testseed.Of(t)
	for _, kind := range testjobs.Kinds() {
		t.Run(kind, func(t *testing.T) {
			set := append(slices.Clip(extras[kind]), "training.max_examples=700")
			want := train(t, job(t, kind, set...))
			var digests []string
			for _, numbers := range []string{"[0]", "[0]", "[0, 1]", "[1, 1]"} {
				s, err := trainOn(t, job(t, kind, append(set, "engine.kind=cuda", "engine.devices="+numbers)...), devices(seed+uint64(len(digests)), 2), nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := math.Abs(float64(s.Eval.LogLoss - want.Eval.LogLoss)); !(diff < 1e-3) {
					t.Errorf("devices %s: log loss %v, on the CPU %v", numbers, s.Eval.LogLoss, want.Eval.LogLoss)
				}
				digests = append(digests, s.Digest)
			}
			if digests[0] != digests[1] || digests[2] != digests[3] {
				t.Errorf("the models of [0], [0], [0, 1] and [1, 1]: %v", digests)
			}
			for i, numbers := range []string{0: "[0]", 2: "[0, 1]", 3: "[1, 1]"} {
				if numbers == "" {
					continue
				}
				s, err := trainOn(t, job(t, kind, append(set, "engine.kind=cuda", "engine.embeddings=device", "engine.devices="+numbers)...), devices(seed+uint64(i), 2), nil)
				if err != nil {
					t.Fatal(err)
				}
				if s.Digest != digests[i] {
					t.Errorf("devices %s: %s with embeddings on the devices, %s on the host", numbers, s.Digest, digests[i])
				}
			}
		})
	}
}

// TestModelsOfDevicesAreEvaluatedOnProcessors checks that a model that devices have trained can be
// evaluated without any, with the results of the devices up to rounding, and that the evaluation
// says in which precision it was made.
func TestModelsOfDevicesAreEvaluatedOnProcessors(t *testing.T) {
	for trained, evaluated := range map[string]string{"float32": "float32", "tf32": "float32", "bf16": "bf16"} {
		j := job(t, "deepfm", append(slices.Clip(onDevices), "engine.devices=[0, 1]", "engine.embeddings=device", "engine.precision="+trained)...)
		s, err := trainOn(t, j, devices(1, 2), nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := load(t, j.Output.ModelDir).Evaluate(t.Context(), j.Data.Eval)
		if err != nil {
			t.Fatal(err)
		}
		if diff := math.Abs(float64(s.Eval.LogLoss - e.Metrics.LogLoss)); !(diff < 1e-3) {
			t.Errorf("%s: log loss %v, in training %v", trained, e.Metrics.LogLoss, s.Eval.LogLoss)
		}
		if s.Precision != trained || e.Precision != evaluated {
			t.Errorf("trained in %s, the summary says %s; evaluated in %s, the evaluation says %s", trained, s.Precision, evaluated, e.Precision)
		}
	}
}

// TestDevicesResume checks that a run on devices that a crash interrupts is resumed to the same
// bits, also with its embeddings elsewhere, and on other devices.
func TestDevicesResume(t *testing.T) {
	seed := testseed.Of(t)
	for i, c := range []struct{ kind, place, then, precision, devices string }{
		{"dlrm", "cpu", "device", "float32", "[0, 1]"}, {"wide_deep", "device", "cpu", "float32", "[0, 1]"},
		{"dcn_v2", "device", "device", "bf16", "[0, 1, 2]"}, {"deepfm", "cpu", "cpu", "tf32", "[1, 1, 0]"},
	} {
		if testing.Short() && i > 1 {
			break
		}
		t.Run(c.kind, func(t *testing.T) {
			set := append(slices.Clip(extras[c.kind]), append(onDevices, "snapshots.every=1 pass", "engine.devices="+c.devices, "engine.embeddings="+c.place,
				"engine.precision="+c.precision)...)
			want, err := trainOn(t, job(t, c.kind, set...), devices(seed, 3), nil)
			if err != nil {
				t.Fatal(err)
			}
			j := job(t, c.kind, set...)
			crash := newCrash(t, j)
			_, err = trainOn(t, j, devices(seed+1, 3), func(o *Options) {
				o.afterPass = func(_ context.Context, r *run) error {
					if r.snapshots.wait(); crash.resume() != "" {
						crash.now()
						return errCrash
					}
					return nil
				}
			})
			if !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			crash.happened()
			j.Engine.Embeddings = c.then
			slices.Reverse(j.Engine.Devices)
			got, err := trainOn(t, j, devices(seed+2, 3), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Digest != want.Digest || len(got.Resumed) != 1 {
				t.Errorf("%v after a crash, %v without one; resumed: %+v", got.Digest, want.Digest, got.Resumed)
			}
		})
	}
}

// TestDeviceFails checks that after the failure of a device the run can be resumed, and makes the
// same model.
func TestDeviceFails(t *testing.T) {
	seed := testseed.Of(t)
	set := append(slices.Clone(onDevices), "snapshots.every=1 pass")
	p := devices(seed, 1)
	want, err := trainOn(t, job(t, "dlrm", set...), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := job(t, "dlrm", set...)
	p = devices(seed, 1)
	_, err = trainOn(t, j, p, func(o *Options) {
		o.afterPass = func(_ context.Context, r *run) error {
			if r.snapshots.wait(); r.snapshots.saved != nil {
				p.FailOperation(1, gpu.ECC)
			}
			return nil
		}
	})
	var resumable *ResumableError
	if !errors.Is(err, gpu.ECC) || !errors.As(err, &resumable) || errkind.Of(context.Background(), err) != errkind.IO {
		t.Fatalf("%v", err)
	}
	got, err := trainOn(t, j, devices(seed, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != want.Digest || len(got.Resumed) != 1 {
		t.Errorf("%v after a failure, %v without one; resumed: %+v", got.Digest, want.Digest, got.Resumed)
	}
}

// TestDevicesTooSmall checks that if the devices have too little memory for the rows of a pass, the
// pass is trained in parts, to the same model. If the rows of a mini-batch do not fit, the job ends
// with an error that says what would need less memory.
func TestDevicesTooSmall(t *testing.T) {
	seed := testseed.Of(t)
	set := append(slices.Clip(onDevices), "engine.embeddings=device", "training.batch_size=50", "pipeline.batches_per_pass=14")
	run := func(bytes int64) (*report.Summary, string, error) {
		var log strings.Builder
		s, err := trainOn(t, job(t, "wide_deep", set...), smallDevices(seed, 1, bytes), func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		return s, log.String(), err
	}
	const parts = "the memory of the devices cannot hold the rows of a whole pass"
	want, log, err := run(64 << 20)
	if err != nil || strings.Contains(log, parts) {
		t.Fatalf("%v\n%s", err, log)
	}
	smallest, divided := int64(0), 0
	for bytes := int64(4 << 20); smallest == 0; bytes -= bytes / 16 {
		s, log, err := run(bytes)
		switch {
		case errors.Is(err, gpu.OutOfMemory) && errkind.Of(context.Background(), err) == errkind.Job:
			smallest = bytes
			if !strings.Contains(err.Error(), "need less") && !strings.Contains(err.Error(), "needs less") {
				t.Errorf("the error does not say what needs less: %v", err)
			}
		case err != nil:
			t.Fatal(err)
		case s.Digest != want.Digest:
			t.Fatalf("%d bytes: %s, want %s", bytes, s.Digest, want.Digest)
		case strings.Contains(log, parts):
			divided++
		}
	}
	if divided == 0 {
		t.Error("no pass was trained in parts")
	}
	t.Logf("%d runs with passes in parts; %d bytes do not suffice", divided, smallest)
}

// TestNoSuchDevice checks that a job with a device that does not exist ends before it does
// anything.
func TestNoSuchDevice(t *testing.T) {
	_, err := trainOn(t, job(t, "lr", append(slices.Clone(onDevices), "engine.devices=[2]")...), devices(0, 2), nil)
	if err == nil || err.Error() != "engine.devices: there is no device 2: emulated devices, seed 0 has 2 devices" || errkind.Of(context.Background(), err) != errkind.Job {
		t.Errorf("%v", err)
	}
}
