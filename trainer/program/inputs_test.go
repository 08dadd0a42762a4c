package program_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/internal/kernel"
	"aibox/internal/testseed"
	"aibox/trainer/program"
)

// large is a mini-batch of so many features that several threads check it.
func large() *program.Inputs {
	in := &program.Inputs{N: 1 << 17, Offsets: []int32{0}}
	for i := range in.N {
		in.Index = append(in.Index, int32(i%9))
		in.Offsets = append(in.Offsets, int32(len(in.Index)))
	}
	return in
}

// TestBagsChecked: the first fault of the bags is found wherever it is, on any number of threads.
func TestBagsChecked(t *testing.T) {
	defer kernel.SetThreads(0)
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	in, net := large(), &program.Network{Fields: 1, RowDim: 1}
	for i := range 200 {
		kernel.SetThreads(1 + i%5)
		if err := in.CheckFor(net, 9, false); err != nil {
			t.Fatal(err)
		}
		at, later := rng.IntN(in.N-2)+1, rng.IntN(in.N-2)+1
		if i%20 == 0 {
			at = (1 + rng.IntN(7)) << 14 // where another thread may begin
		}
		faults := []struct {
			list  []int32
			value int32
			what  string
		}{
			{in.Offsets, int32(at) - 2, fmt.Sprintf("model: offsets of bag %d descend from %d to %d", at-1, at-1, at-2)},
			{in.Offsets, int32(at) + 2, fmt.Sprintf("model: offsets of bag %d descend from %d to %d", at, at+2, at+1)},
			{in.Offsets, -7, fmt.Sprintf("model: offsets of bag %d descend from %d to -7", at-1, at-1)},
			{in.Index, 9, fmt.Sprintf("model: feature %d refers to row 9 of 9", at)},
			{in.Index, -1, fmt.Sprintf("model: feature %d refers to row -1 of 9", at)},
		}
		fault := faults[rng.IntN(len(faults))]
		was, wasLater := fault.list[at], in.Index[later]
		fault.list[at] = fault.value
		if &fault.list[0] == &in.Offsets[0] || later > at {
			in.Index[later] = 10
		}
		if err := in.CheckFor(net, 9, false); err == nil || err.Error() != fault.what {
			t.Fatalf("%d: %v, want %s", i, err, fault.what)
		}
		in.Index[later], fault.list[at] = wasLater, was
	}
}

// BenchmarkCheck checks a mini-batch.
func BenchmarkCheck(b *testing.B) {
	in, net := large(), &program.Network{Fields: 1, RowDim: 1}
	for b.Loop() {
		if err := in.CheckFor(net, 9, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(in.N), "ns/feature")
}
