package trainer

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aibox/gpu/profiled"
	"aibox/internal/testseed"
)

// TestKernelTimes checks that a run whose kernels are measured makes the same model, and that each
// kernel, product and copy that the summary counts is among those that were measured.
func TestKernelTimes(t *testing.T) {
	eachPlace(t, testKernelTimes)
}

func testKernelTimes(t *testing.T, place string) {
	seed := testseed.Of(t)
	for _, numbers := range []string{"[0]", "[0, 1]", "[1, 1]"} {
		set := append(slices.Clone(onDevices), "engine.devices="+numbers, "model.batch_norm=true", place)
		want, err := trainOn(t, job(t, "deepfm", set...), devices(seed, 2), nil)
		if err != nil {
			t.Fatal(err)
		}
		times := new(profiled.Times)
		got, err := trainOn(t, job(t, "deepfm", set...), devices(seed+1, 2), func(o *Options) { o.KernelTimes = times })
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != want.Digest {
			t.Errorf("devices %s: %s with measured kernels, %s without", numbers, got.Digest, want.Digest)
		}
		var out bytes.Buffer
		if err := times.Write(&out); err != nil {
			t.Fatal(err)
		}
		calls := map[string]int64{} // by kind and device
		for line := range strings.Lines(out.String()) {
			c := strings.Split(line, "\t")
			if len(c) != 8 || c[0] == "operation" {
				continue
			}
			kind, _, compound := strings.Cut(c[0], " ")
			if !compound && kind != "fill" {
				kind = "kernel"
			}
			n, err := strconv.ParseInt(c[2], 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			calls[kind+c[1]] += n
		}
		counted := map[string]int64{}
		for i, d := range got.Devices {
			// How many rows stay on devices, and with that what is copied, depends on which worker
			// comes first.
			if want := want.Devices[i]; d.RowsUploaded == 0 && (d.KernelLaunches != want.KernelLaunches || d.MatrixProducts != want.MatrixProducts || d.UploadedBytes != want.UploadedBytes) {
				t.Errorf("devices %s: %+v with measured kernels, %+v without", numbers, d, want)
			}
			counted["kernel"+strconv.Itoa(d.Device)] += d.KernelLaunches
			counted["product"+strconv.Itoa(d.Device)] += d.MatrixProducts
		}
		for what, n := range counted {
			if n == 0 || calls[what] != n {
				t.Errorf("devices %s: %d times %s were measured, %d counted", numbers, calls[what], what, n)
			}
		}
		if several := numbers != "[0]"; calls["copy1"] == 0 == several || (calls["all-reduce1"] > got.Steps) != several || calls["fill"+numbers[1:2]] == 0 {
			t.Errorf("devices %s: %v", numbers, calls)
		}
	}
}
