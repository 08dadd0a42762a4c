package cuda_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"aibox/gpu/emulated"
	"aibox/gpu/kernels/twin"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/trainer/engine/cuda"
)

// TestRowLimit: passes of as many rows as RowLimit allows fit the memory, two at a time, however
// many features their mini-batches have; and it allows a good part of what there is.
func TestRowLimit(t *testing.T) {
	seed := testseed.Of(t)
	tries := 4
	if testing.Short() {
		tries = 2
	}
	for i := range tries {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		s := nightSetup(i, seed+uint64(i))
		s.held, s.examples = true, 16
		bytes := int64(400<<10 + rng.IntN(300<<10))
		p := emulated.New(emulated.Options{Devices: emulated.Devices(2, bytes), Images: twin.Images()})
		numbers := devices(1 + i%2)
		b := newBench(t, s)
		e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: p, Devices: numbers, RowsOnDevice: true})
		if err != nil {
			t.Fatal(err)
		}
		b.engine = e
		if err := e.Import(); err != nil {
			t.Fatal(err)
		}
		limit, err := e.RowLimit(s.examples)
		if err != nil {
			t.Fatal(err)
		}
		n := new(night)
		const passes = 3
		for range passes {
			pass := new(reader.Pass)
			for range 15 { // until the next pass is there
				batch := randomBatch(rng, s, 60)
				batch.Offsets, batch.Index = []int32{0}, nil
				for range batch.N * len(s.spec.Fields) {
					for range rng.IntN(20) {
						batch.Index = append(batch.Index, int32(rng.IntN(len(batch.Rows))))
					}
					batch.Offsets = append(batch.Offsets, int32(len(batch.Index)))
				}
				batch.Invert(len(batch.Rows))
				pass.Batches = append(pass.Batches, batch)
			}
			n.passes = append(n.passes, nightPass{Pass: pass})
		}
		rows := int64(0)
		for _, pass := range n.passes {
			rows = limit.Rows(pass.Batches) // the largest mini-batch of all decides
		}
		if words := int64(4 * b.layout.Words()); rows < 60 || rows*words > bytes*int64(len(numbers)) {
			t.Fatalf("%d rows of %d bytes, in %d bytes of %d devices", rows, words, bytes, len(numbers))
		}
		for i, pass := range n.passes {
			for k := range rows {
				pass.Keys = append(pass.Keys, uint64(int64(i)*rows/2+k)*0x10001+1)
			}
		}
		_, err = b.live(n)
		kept := int64(0)
		for _, d := range e.Stats() {
			kept += d.Rows.Kept
		}
		if err := errors.Join(err, e.Close(), p.Err()); err != nil {
			t.Fatalf("%d rows in %d bytes of %d devices: %v", rows, bytes, len(numbers), err)
		}
		if kept < (passes-1)*(rows/2) {
			t.Errorf("%d rows in %d bytes of %d devices: %d were kept", rows, bytes, len(numbers), kept)
		}
	}
}
