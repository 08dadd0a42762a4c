package emulated_test

import (
	"errors"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
)

// TestProductBytes: the products of a stream, and of its graphs, take together what Info says; the
// stream must have it before they are captured.
func TestProductBytes(t *testing.T) {
	infos := emulated.Devices(1, 8<<10)
	infos[0].ProductBytes = 3 << 10
	p := emulated.New(emulated.Options{Devices: infos})
	d, err := p.Open(0)
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	m, err := d.Alloc("m", 256)
	must(err)
	at := func(offset int) gpu.Matrix { return gpu.Matrix{Memory: m, Offset: offset, Stride: 2} }
	product := gpu.Product{M: 2, N: 2, K: 2, A: at(0), B: at(16), C: at(32)}
	for i := range 3 {
		s, err := d.NewStream("s")
		must(err, s.Fill(gpu.All(m), 0))
		capture := func() error {
			_, err := s.Capture("g", func() error { return errors.Join(s.PrepareProducts(), s.Multiply(product)) })
			return err
		}
		if err := capture(); !errors.Is(err, gpu.InvalidArgument) {
			t.Errorf("a product was captured in a stream that was not prepared: %v", err)
		}
		prepare := []func() error{s.PrepareProducts, func() error { return s.Multiply(product) }, s.PrepareProducts}[i]
		err = prepare()
		if i == 2 {
			var full *gpu.Error
			if !errors.As(err, &full) || full.Kind != gpu.OutOfMemory || full.Asked != 3<<10 {
				t.Errorf("a third stream: %v", err)
			}
			break
		}
		must(err, capture(), capture(), s.Multiply(product), s.Synchronize())
		free, total, err := d.FreeMemory()
		must(err)
		if took := total - free - 256; took != int64(i+1)*3<<10 {
			t.Errorf("%d bytes for the products of %d streams", took, i+1)
		}
	}
	must(d.Close(), p.Err())
	again, err := p.Open(0)
	must(err)
	if free, _, err := again.FreeMemory(); err != nil || free != 8<<10 {
		t.Errorf("%d bytes free after Close, %v", free, err)
	}
}
