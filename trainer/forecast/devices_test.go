package forecast

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/errkind"
)

// job is a job of which only what a forecast is made of matters.
func job(t *testing.T, set ...string) *configs.Job {
	t.Helper()
	j, err := configs.Parse("job.yaml", []byte(`
data:
  train: [log.tsv]
  format: tsv
  columns:
    - {name: label, role: label}
    - {name: D1, role: dense}
    - {name: D2, role: dense}
    - {name: user}
    - {name: item}
model: {kind: dlrm}
training: {batch_size: 64}
output: {model_dir: model}
`), configs.LoadOptions{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// devices are n devices of 64 MiB each.
func devices(n int) *emulated.Platform {
	return emulated.New(emulated.Options{Devices: emulated.Devices(n, 64<<20)})
}

// TestBatchThatFits: the training.batch_size that an error names is the largest that fits, however
// many devices share a mini-batch, and none is named where none does.
func TestBatchThatFits(t *testing.T) {
	const batch = 300
	for _, devicesOf := range []string{"[0]", "[0, 0]", "[0, 1, 0]"} {
		on := func(free int64, batch int) *OnDevices {
			p := devices(2)
			if err := p.Occupy(0, free); err != nil {
				t.Fatal(err)
			}
			j := job(t, "engine.kind=cuda", "engine.devices="+devicesOf, fmt.Sprint("training.batch_size=", batch))
			f, err := forDevices(j, DataSize{}, func() (gpu.Platform, error) { return p, nil })
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		f := on(64<<20, batch)
		times := int64(f.Devices[0].Times)
		need, fixed := times*f.Needs.Device(), times*(f.Needs.Device()-f.Needs.Arena-f.Needs.Inputs)
		named := 0
		for free := need - 1; free > fixed; free -= (need - fixed) / 5 {
			err := on(free, batch).Fits()
			if err == nil {
				t.Fatalf("devices %s: %d bytes suffice, which are fewer than %d", devicesOf, free, need)
			}
			_, after, found := strings.Cut(err.Error(), "make training.batch_size smaller (")
			if !found {
				if on(free, 1).Fits() == nil {
					t.Errorf("devices %s: a mini-batch of 1 fits, and this does not say so: %v", devicesOf, err)
				}
				continue
			}
			named++
			figure, _, _ := strings.Cut(after, " fits)")
			fits, err := strconv.Atoi(figure)
			if err != nil {
				t.Fatalf("no figure: %q", after)
			}
			if err := on(free, fits).Fits(); err != nil {
				t.Errorf("devices %s: %d should fit %d bytes: %v", devicesOf, fits, free, err)
			}
			if fits+1 < batch && on(free, fits+1).Fits() == nil {
				t.Errorf("devices %s: %d fit %d bytes, only %d were named", devicesOf, fits+1, free, fits)
			}
		}
		if named < 3 {
			t.Errorf("devices %s: %d errors name a size", devicesOf, named)
		}
	}
}

// TestForDevices: what is forecast of devices is compared with what they have free, and an error
// says what to change.
func TestForDevices(t *testing.T) {
	open := func(p gpu.Platform) func() (gpu.Platform, error) {
		return func() (gpu.Platform, error) { return p, nil }
	}
	j := job(t, "engine.kind=cuda", "engine.devices=[0, 0, 1]")
	f, err := forDevices(j, DataSize{}, open(devices(2)))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Devices) != 2 || f.Devices[0].Times != 2 || f.Devices[1].Free != 64<<20 || f.Examples != 64 || f.Of != 3 || f.Fits() != nil {
		t.Errorf("%+v, %v", f, f.Fits())
	}
	need := f.Needs.Device()
	fixed := need - f.Needs.Arena - f.Needs.Inputs
	for _, c := range []struct {
		free             int64
		fits             bool
		batch, optimizer bool // a smaller one suffices
		otherwise        string
	}{
		{2 * need, true, false, false, ""},
		{2*need - 1, false, true, true, "training.batch_size smaller (63 fits)"},
		{need + fixed, false, true, true, "training.batch_size smaller (27 fits)"},
		{2 * fixed, false, false, true, "name the device only once"},
		{fixed, false, false, false, "layers of the model fewer or narrower"},
	} {
		p := devices(2)
		if err := p.Occupy(0, c.free); err != nil {
			t.Fatal(err)
		}
		f, err := forDevices(j, DataSize{}, open(p))
		if err != nil {
			t.Fatal(err)
		}
		err = f.Fits()
		if (err == nil) != c.fits {
			t.Fatalf("%d bytes free, %d needed twice: %v", c.free, need, err)
		}
		if err == nil {
			continue
		}
		if text := err.Error(); errkind.Of(t.Context(), err) != errkind.Job || strings.Contains(text, "device 1") || !strings.Contains(text, c.otherwise) ||
			strings.Contains(text, "training.batch_size") != c.batch || strings.Contains(text, "optimizer.dense") != c.optimizer || !strings.Contains(text, "free what other programs have") {
			t.Errorf("%d bytes free: %s", c.free, text)
		}
	}
	infos := emulated.Devices(2, 64<<20)
	infos[0].ProductBytes = 1 << 20
	multiplying := emulated.New(emulated.Options{Devices: infos})
	if f, err := forDevices(j, DataSize{}, open(multiplying)); err != nil || f.Needs.Device() != need+1<<20 {
		t.Errorf("where products take memory: %+v, %v", f, err)
	}
	absent := &gpu.Error{Kind: gpu.WrongDriver, Device: -1, Reason: "no driver"}
	if f, err := forDevices(j, DataSize{}, func() (gpu.Platform, error) { return nil, absent }); err != nil || f.Needs.Device() != need || f.Absent == nil || f.Fits() != nil {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := forDevices(j, DataSize{}, open(devices(1))); err == nil || errkind.Of(t.Context(), err) != errkind.Job {
		t.Errorf("a device that is not there: %v", err)
	}
	host, err := ForHost(job(t), DataSize{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := ForHost(j, DataSize{}); err != nil || m.Engine < f.Needs.Pinned || m.Engine == host.Engine {
		t.Errorf("%+v, %v; on the host %+v", m, err, host)
	}
}
