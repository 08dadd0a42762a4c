package profiled_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/twin"
	"aibox/gpu/profiled"
	"aibox/internal/testseed"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// table is what Write writes: calls and bytes, by operation and device.
func table(t *testing.T, times *profiled.Times) map[string]string {
	t.Helper()
	var out bytes.Buffer
	must(t, times.Write(&out))
	rows, shares := map[string]string{}, map[string]float64{}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "operation\t") {
			continue
		}
		c := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(c) != 8 {
			t.Fatalf("%q", line)
		}
		calls, err := strconv.Atoi(c[2])
		total, err2 := strconv.ParseFloat(c[3], 64)
		mean, err3 := strconv.ParseFloat(c[4], 64)
		share, err4 := strconv.ParseFloat(c[5], 64)
		mb, err5 := strconv.ParseFloat(c[6], 64)
		speed, err6 := strconv.ParseFloat(c[7], 64)
		must(t, err, err2, err3, err4, err5, err6)
		if want := mb / total; math.Abs(speed-want) > 0.01*want+0.06+0.0005/total {
			t.Errorf("%q: %v GB/s, want %v", line, speed, want)
		}
		if mean*float64(calls) < total*1e3*0.99 || mean*float64(calls) > total*1e3*1.01 || mean < 1 {
			t.Errorf("%q: the mean of %d calls", line, calls)
		}
		shares[c[1]] += share
		rows[c[0]+" @"+c[1]] = c[2] + ", " + c[6]
	}
	for device, sum := range shares {
		if sum < 0.99 || sum > 1.01 {
			t.Errorf("the shares of device %s add up to %v", device, sum)
		}
	}
	return rows
}

// TestTimes: every operation of every device is counted once for each time that it runs, on graphs, too.
func TestTimes(t *testing.T) {
	for _, seed := range []uint64{0, testseed.Of(t)} {
		p := emulated.New(emulated.Options{Devices: emulated.Devices(2, 1<<20), Images: twin.Images(), Seed: seed})
		times := new(profiled.Times)
		platform := profiled.New(p, times)
		var devices []gpu.Device
		var streams []gpu.Stream
		var arrays []gpu.Region
		for i := range 2 {
			d, err := platform.Open(i)
			must(t, err)
			s, err := d.NewStream("s")
			must(t, err)
			if s.Device() != d {
				t.Error("a stream is of another device")
			}
			m, err := d.Alloc("m", 4*16)
			must(t, err)
			must(t, s.Fill(gpu.All(m), 0))
			devices, streams, arrays = append(devices, d), append(streams, s), append(arrays, gpu.All(m))
		}
		group, err := platform.Group(devices)
		must(t, err)
		for range 3 {
			must(t, group.AllReduce(streams, arrays))
		}
		d, s := devices[0], streams[0]
		set, err := kernels.Load(d)
		must(t, err)
		host, err := d.AllocPinned("host", 4*16)
		must(t, err)
		bytes, err := host.Writing(0, 4*16)
		must(t, err)
		clear(bytes)
		c, err := d.Alloc("c", 4*16)
		must(t, err)
		m := arrays[0].Memory
		product := gpu.Product{
			TransB: true, M: 2, N: 3, K: 4, A: gpu.Matrix{Memory: m, Stride: 4}, B: gpu.Matrix{Memory: m, Stride: 4}, C: gpu.Matrix{Memory: c, Stride: 3},
			Epilogue: gpu.Epilogue{Bias: gpu.Part(m, 0, 12), ReLU: true},
		}
		rounding := product
		rounding.Precision, rounding.Round, rounding.Epilogue = gpu.BF16Product, true, gpu.Epilogue{}
		if fuses, err := s.Fuses(product); !fuses || err != nil {
			t.Errorf("Fuses: %v, %v", fuses, err)
		}
		graph, err := s.Capture("graph", func() error {
			if err := s.Synchronize(); !errors.Is(err, gpu.InvalidArgument) {
				t.Errorf("a stream that is captured may be waited for: %v", err)
			}
			return errors.Join(
				s.Copy(gpu.All(m), gpu.All(host)),
				s.Multiply(product),
				s.Multiply(rounding),
				set.Copy(s, kernels.Matrix{Memory: c, Columns: 4, Stride: 4}, kernels.Matrix{Memory: m, Columns: 4, Stride: 4}, 2))
		})
		must(t, err)
		const runs = 900 // more than are remembered
		for range runs {
			must(t, s.Run(graph))
		}
		other, err := d.NewStream("other")
		must(t, err)
		for _, s := range []gpu.Stream{streams[1], other} {
			if err := s.Run(graph); !errors.Is(err, gpu.InvalidArgument) {
				t.Errorf("a graph of another stream: %v", err)
			}
		}
		must(t, s.Copy(gpu.All(host), gpu.All(m)), s.Copy(arrays[1], gpu.All(m)))
		if err := s.Fill(gpu.Part(m, 0, 3), 0); !errors.Is(err, gpu.InvalidArgument) { // is not counted
			t.Errorf("a fill of three bytes: %v", err)
		}
		for _, d := range devices {
			must(t, d.Close())
		}
		must(t, p.Err())
		want := map[string]string{
			"fill @0": "1, 0.000", "fill @1": "1, 0.000", "all-reduce of 16 numbers @0": "3, 0.000", "all-reduce of 16 numbers @1": "3, 0.000",
			"copy from host @0": "900, 0.115", "product float32 NT m=2 n=3 k=4 bias+relu @0": "900, 0.104",
			"product bf16 NT m=2 n=3 k=4 rounded @0": "900, 0.047", "copy to host @0": "1, 0.000", "copy between devices @0": "1, 0.000",
		}
		got := table(t, times)
		name := regexp.MustCompile(`^\w+ @0$`)
		for k, calls := range got {
			if _, ok := want[k]; !ok && name.MatchString(k) && calls == "900, 0.058" {
				want[k] = calls // the kernel, whatever its name
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 10 {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestBroken: a device that breaks keeps its error, and the times that were read.
func TestBroken(t *testing.T) {
	p := emulated.New(emulated.Options{Devices: emulated.Devices(1, 1<<20)})
	times := new(profiled.Times)
	d, err := profiled.New(p, times).Open(0)
	must(t, err)
	s, err := d.NewStream("s")
	must(t, err)
	m, err := d.Alloc("m", 64)
	must(t, err)
	must(t, s.Fill(gpu.All(m), 0), d.Synchronize())
	p.FailOperation(2, gpu.ECC)
	err = s.Fill(gpu.All(m), 0)
	for range 3 {
		err = errors.Join(err, s.Fill(gpu.All(m), 0), d.Synchronize())
	}
	if !errors.Is(err, gpu.ECC) {
		t.Errorf("%v", err)
	}
	must(t, d.Close())
	if got := table(t, times)["fill @0"]; got != "1, 0.000" {
		t.Errorf("%s fills", got)
	}
}
