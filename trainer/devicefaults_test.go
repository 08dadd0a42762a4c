package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

// deviceFault is a run that a failure of devices ends, midway or when it is resumed.
type deviceFault struct {
	kind  gpu.Kind
	is    errkind.Kind
	says  []string
	cause func(t *testing.T, p *emulated.Platform)
}

// occupied simulates another program that takes all but that many bytes of device 0.
func occupied(free int64) func(*testing.T, *emulated.Platform) {
	return func(t *testing.T, p *emulated.Platform) {
		t.Helper()
		if err := p.Occupy(0, free); err != nil {
			t.Fatal(err)
		}
	}
}

func operation(kind gpu.Kind) func(*testing.T, *emulated.Platform) {
	return func(_ *testing.T, p *emulated.Platform) { p.FailOperation(1, kind) }
}

func call(n int, kind gpu.Kind) func(*testing.T, *emulated.Platform) {
	return func(_ *testing.T, p *emulated.Platform) { p.FailCall(n, kind) }
}

// TestDeviceFaults checks that whatever happens to a device, while a job trains or when it is
// resumed, the error says what it was, and the earlier model is unchanged. The job can then be
// resumed from its snapshot, to the model of a run without failures.
func TestDeviceFaults(t *testing.T) {
	eachPlace(t, testDeviceFaults)
}

// eachPlace runs a test with embeddings on the host and on the devices; in short mode only on the
// host.
func eachPlace(t *testing.T, test func(t *testing.T, setting string)) {
	places := []string{"cpu", "device"}
	if testing.Short() {
		places = places[:1]
	}
	for _, place := range places {
		t.Run(place, func(t *testing.T) { test(t, "engine.embeddings="+place) })
	}
}

func testDeviceFaults(t *testing.T, place string) {
	seed := testseed.Of(t)
	set := append(slices.Clone(onDevices), "snapshots.every=1 pass", place)
	want, err := trainOn(t, job(t, "dlrm", set...), devices(seed, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	midway := map[string]deviceFault{
		"lost":   {gpu.DeviceLost, errkind.IO, []string{"device 0", "the device is lost"}, operation(gpu.DeviceLost)},
		"ECC":    {gpu.ECC, errkind.IO, []string{"device 0", "uncorrectable memory error (ECC)"}, operation(gpu.ECC)},
		"kernel": {gpu.LaunchFailed, errkind.Internal, []string{"device 0", "an operation failed on the device"}, operation(gpu.LaunchFailed)},
		"memory": {gpu.OutOfMemory, errkind.Job, []string{"out of memory"}, call(1, gpu.OutOfMemory)},
	}
	const opened = 3 // the call by which the engine opens the device: the first two look for free memory
	goingOn := map[string]deviceFault{
		"parameters do not fit": {gpu.OutOfMemory, errkind.Job, []string{
			"device 0 cannot allocate", "parameters of the model", "the driver and other programs, such as another job, use 64.0 MiB of its 64.0 MiB", "512 of 67108864 free",
		}, occupied(512)},
		"mini-batch does not fit": {gpu.OutOfMemory, errkind.Job, []string{
			"device 0 cannot allocate", "training.batch_size", "the driver and other programs, such as another job, use 63.8 MiB of its 64.0 MiB",
		}, occupied(200 << 10)},
		"in use":           {gpu.InUse, errkind.Locked, []string{"engine.devices", "in use by another process"}, call(1, gpu.InUse)},
		"in use meanwhile": {gpu.InUse, errkind.Locked, []string{"engine.devices", "in use by another process"}, call(opened, gpu.InUse)},
		"wrong driver":     {gpu.WrongDriver, errkind.Job, []string{"cannot use devices"}, call(opened+1, gpu.WrongDriver)},
		"lost before":      {gpu.DeviceLost, errkind.IO, []string{"engine.devices", "Open of device 0: the device is lost"}, func(t *testing.T, p *emulated.Platform) { breakDevice(t, p, 0) }},
	}
	check := func(t *testing.T, f deviceFault, err error, j *configs.Job) {
		t.Helper()
		var e *gpu.Error
		if !errors.As(err, &e) || e.Kind != f.kind || errkind.Of(context.Background(), err) != f.is {
			t.Fatalf("%v is %v", err, errkind.Of(context.Background(), err))
		}
		for _, words := range f.says {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("the error does not say %q: %v", words, err)
			}
		}
		var s report.Summary
		data, err := os.ReadFile(filepath.Join(j.Output.ModelDir, failedSummaryName))
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil || s.Failure == nil || s.Failure.Kind != f.is.String() {
			t.Errorf("%s: %v, %+v", failedSummaryName, err, s.Failure)
		}
	}
	interrupt := func(t *testing.T, f deviceFault) (j *configs.Job, earlier string) {
		t.Helper()
		j = job(t, "dlrm", set...)
		before, err := testjobs.Parse("dlrm", append(set, "model.embedding_dim=4", "training.max_examples=100", "data.train=["+strings.Join(j.Data.Train, ", ")+"]", "output.model_dir="+j.Output.ModelDir))
		if err != nil {
			t.Fatal(err)
		}
		s, err := trainOn(t, before, devices(seed, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := devices(seed+1, 1)
		_, err = trainOn(t, j, p, func(o *Options) {
			o.afterPass = func(_ context.Context, r *run) error {
				if r.snapshots.wait(); r.snapshots.saved != nil {
					f.cause(t, p)
				}
				return nil
			}
		})
		check(t, f, err, j)
		if !errors.As(err, new(*ResumableError)) {
			t.Errorf("not resumable: %v", err)
		}
		if got := testjobs.Digest(t, j); got != s.Digest {
			t.Errorf("the earlier model is now %v, was %v", got, s.Digest)
		}
		return j, s.Digest
	}
	complete := func(t *testing.T, j *configs.Job) {
		t.Helper()
		got, err := trainOn(t, j, devices(seed+3, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != want.Digest || len(got.Resumed) != 1 {
			t.Errorf("%v after a failure, %v without one; resumed: %+v", got.Digest, want.Digest, got.Resumed)
		}
	}
	for name, f := range midway {
		t.Run(name, func(t *testing.T) {
			j, _ := interrupt(t, f)
			complete(t, j)
		})
	}
	for name, f := range goingOn {
		t.Run(name, func(t *testing.T) {
			j, earlier := interrupt(t, midway["ECC"])
			p := devices(seed+2, 1)
			f.cause(t, p)
			_, err := trainOn(t, j, p, nil)
			check(t, f, err, j)
			if got := testjobs.Digest(t, j); got != earlier {
				t.Errorf("the earlier model is now %v, was %v", got, earlier)
			}
			complete(t, j)
		})
	}
}

// TestDevicesFailAnywhere makes a device fail anywhere in a job. When the job is started again,
// from its snapshot if it has one, it must make the model of a run without failures.
func TestDevicesFailAnywhere(t *testing.T) {
	rng := testseed.Rand(t)
	set := append(slices.Clone(onDevices), "snapshots.every=1 pass", "engine.devices=[0, 1]", "model.batch_norm=true")
	p := devices(rng.Uint64(), 2)
	want, err := trainOn(t, job(t, "deepfm", set...), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls, operations := p.Calls(), p.Operations()
	kinds := []gpu.Kind{gpu.OutOfMemory, gpu.InUse, gpu.WrongDriver, gpu.LaunchFailed, gpu.ECC, gpu.DeviceLost}
	resumed := 0
	runs := 12
	if testing.Short() {
		runs = 6
	}
	for i := range runs {
		// With embeddings on the devices there are about as many calls, and the model is the same.
		place := "engine.embeddings=" + []string{"cpu", "device"}[i%2]
		j, p, kind := job(t, "deepfm", append(set, place)...), devices(rng.Uint64(), 2), one(rng, kinds...)
		if kind.Breaks() && rng.IntN(2) == 0 {
			p.FailOperation(1+rng.IntN(operations), kind)
		} else {
			p.FailCall(1+rng.IntN(calls), kind)
		}
		_, err := trainOn(t, j, p, nil)
		if err != nil && !errors.Is(err, kind) {
			t.Fatalf("%v: %v", kind, err)
		}
		failed := err
		got, err := trainOn(t, j, devices(rng.Uint64(), 2), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != want.Digest || errors.As(failed, new(*ResumableError)) != (len(got.Resumed) == 1) {
			t.Errorf("%s, after %v: %v, without a failure %v; resumed: %+v", place, failed, got.Digest, want.Digest, got.Resumed)
		}
		resumed += len(got.Resumed)
	}
	t.Logf("%d runs went on from a snapshot", resumed)
	if resumed == 0 {
		t.Error("no run went on from a snapshot")
	}
}

// breakDevice makes a device fail as if it were lost.
func breakDevice(t *testing.T, p *emulated.Platform, number int) {
	t.Helper()
	d, err := p.Open(number)
	if err != nil {
		t.Fatal(err)
	}
	p.FailCall(1, gpu.DeviceLost)
	if err := d.Synchronize(); !errors.Is(err, gpu.DeviceLost) {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOtherDevices checks that a run can be resumed with other devices, if there are equally many.
func TestOtherDevices(t *testing.T) {
	eachPlace(t, testOtherDevices)
}

func testOtherDevices(t *testing.T, place string) {
	seed := testseed.Of(t)
	set := append(slices.Clone(onDevices), "snapshots.every=1 pass", place)
	want, err := trainOn(t, job(t, "dlrm", append(set, "engine.devices=[0, 2]")...), devices(seed, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		second  string
		resumes int
	}{{"[0, 2]", 1}, {"[2]", 0}} {
		j := job(t, "dlrm", append(set, "engine.devices=[0, 1]")...)
		p := devices(seed, 3)
		_, err := trainOn(t, j, p, func(o *Options) {
			o.afterPass = func(_ context.Context, r *run) error {
				if r.snapshots.wait(); r.snapshots.saved != nil {
					p.FailOperation(1, gpu.DeviceLost)
				}
				return nil
			}
		})
		if !errors.Is(err, gpu.DeviceLost) {
			t.Fatal(err)
		}
		other := job(t, "dlrm", append(set, "engine.devices="+c.second, "output.model_dir="+j.Output.ModelDir)...)
		got, err := trainOn(t, other, devices(seed, 3), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Resumed) != c.resumes || (got.Digest == want.Digest) != (c.resumes == 1) {
			t.Errorf("devices %s: %v after a failure, %v without one; resumed: %+v", c.second, got.Digest, want.Digest, got.Resumed)
		}
	}
}

// TestSharedDevice checks that the log has figures if other programs use much memory of a device,
// and says nothing if they use little.
func TestSharedDevice(t *testing.T) {
	for _, free := range []int64{32 << 20, 60 << 20} {
		var log bytes.Buffer
		p := devices(1, 1)
		occupied(free)(t, p)
		if _, err := trainOn(t, job(t, "lr", onDevices...), p, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }); err != nil {
			t.Fatal(err)
		}
		crowded := free < 50<<20
		if got := strings.Contains(log.String(), "other programs, such as another job"); got != crowded || crowded && !strings.Contains(log.String(), "device=0 free_bytes=33554432 memory_bytes=67108864") {
			t.Errorf("%d bytes free: %s", free, log.String())
		}
	}
}
