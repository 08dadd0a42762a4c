package cuda_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/model"
)

// pooling is a platform that remembers in which streams bags are pooled.
type pooling struct {
	gpu.Platform
	streams []string
}

type poolingDevice struct {
	gpu.Device
	platform *pooling
}

type poolingStream struct {
	gpu.Stream
	name     string
	platform *pooling
}

func (p *pooling) Open(number int) (gpu.Device, error) {
	d, err := p.Platform.Open(number)
	return &poolingDevice{d, p}, err
}

func (d *poolingDevice) NewStream(name string) (gpu.Stream, error) {
	s, err := d.Device.NewStream(name)
	return &poolingStream{s, name, d.platform}, err
}

func (s *poolingStream) Launch(k gpu.Kernel, g gpu.Geometry, args ...gpu.Arg) error {
	if k.Name() == "table_pool" {
		s.platform.streams = append(s.platform.streams, s.name)
	}
	return s.Stream.Launch(k, g, args...)
}

// TestPooledEarly: where the end of a step does not use the memory of pooled bags, those of the
// next step are pooled beside it, if that has the same size. Emulated devices find what is used
// without an order.
func TestPooledEarly(t *testing.T) {
	seed := testseed.Of(t)
	crossing := small("relu", false)
	crossing.Kind, crossing.CrossLayers = model.KindDCN, 1
	for name, c := range map[string]struct {
		spec model.Spec
		want string // of each mini-batch the stream
	}{
		// Nothing but the interaction uses the vectors.
		"dlrm": {small("relu", false), "compute rows compute compute rows compute compute compute"},
		// The network gets a copy of the vectors.
		"deepfm": {deep(false), "compute rows compute compute rows compute compute compute"},
		// The gradients of weights use what enters the layers.
		"dcn": {crossing, strings.TrimSpace(strings.Repeat("compute ", 8))},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup{spec: c.spec, dense: adam, held: true, admitted: true, seed: seed, batches: 8, examples: 40}
			b, p := newBench(t, s), &pooling{Platform: platform(1, seed)}
			other := slices.IndexFunc(b.pass.Batches, func(x reader.Batch) bool { return x.N != b.pass.Batches[0].N })
			if other < 0 {
				t.Fatal("all mini-batches have the same size")
			}
			e := b.open(t, p, devices(1))
			b.begin(t)
			for _, of := range []int{0, 0, other, 0, 0} {
				do(t, e.Train, b, of)
			}
			do(t, e.Infer, b, 0)
			do(t, e.Infer, b, 0)
			do(t, e.Train, b, 0)
			b.end(t)
			if err := errors.Join(e.Close(), p.Platform.(*emulated.Platform).Err()); err != nil {
				t.Error(err)
			}
			if got := strings.Join(p.streams, " "); got != c.want {
				t.Errorf("bags are pooled in %s, want %s", got, c.want)
			}
		})
	}
}

// do trains or infers a mini-batch of a bench.
func do(t *testing.T, call func(engine.Batch, engine.Done) error, b *bench, number int) {
	t.Helper()
	if err := call(engine.Batch{Batch: &b.pass.Batches[number]}, func(*engine.Result) error { return nil }); err != nil {
		t.Fatal(err)
	}
}
