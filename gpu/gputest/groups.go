package gputest

import (
	"fmt"
	"math"

	"aibox/gpu"
	"aibox/internal/testseed"
)

// testAllReduce sums up random arrays on 1, 2, 3 and 8 devices. All devices get the same
// bits, and every time.
func testAllReduce(r *rig) {
	rng := testseed.Rand(r)
	for _, n := range []int{1, 2, 3, 8} {
		devices := r.open(n)
		group := must[gpu.Group](r)(r.Platform.Group(devices))
		size := 1 + rng.IntN(300)
		values := make([][]float32, n)
		for i := range values {
			values[i] = fill(size, func(int) float32 { return float32(rng.NormFloat64()) * float32(math.Exp(4*rng.NormFloat64())) })
		}
		var first []float32
		for round := range 3 {
			var streams []gpu.Stream
			var arrays []gpu.Region
			for i, d := range devices {
				streams = append(streams, r.stream(d, "s"))
				m := r.alloc(d, "array", 4*size+8)
				put(r, streams[i], m, 4, values[i])
				arrays = append(arrays, gpu.Part(m, 4, 4*size))
			}
			r.must(group.AllReduce(streams, arrays))
			for i, s := range streams {
				got := get[float32](r, s, arrays[i].Memory, 4, size)
				if first == nil {
					first = got
				}
				equal(r, fmt.Sprintf("device %d of %d, round %d", i, n, round), got, first)
				r.must(arrays[i].Memory.Free())
			}
		}
		for k, v := range first {
			want, length := 0.0, 0.0
			for i := range values {
				want += float64(values[i][k])
				length += math.Abs(float64(values[i][k]))
			}
			if !(math.Abs(float64(v)-want) <= length*1e-6) {
				r.Fatalf("%d devices: element %d is %v, want %v", n, k, v, want)
			}
		}
	}
}

// testAllReduceOrder takes steps of training on several devices: each computes its gradient, they
// are summed in streams of their own, and every device goes on from the sum.
func testAllReduceOrder(r *rig) {
	const n, size, steps = 3, 64, 5
	devices := r.open(n)
	group := must[gpu.Group](r)(r.Platform.Group(devices))
	var compute, reduce []gpu.Stream
	var computed, reduced []gpu.Event
	var weights, gradients []gpu.Memory
	var arrays []gpu.Region
	for i, d := range devices {
		compute, reduce = append(compute, r.stream(d, "compute")), append(reduce, r.stream(d, "reduce"))
		computed, reduced = append(computed, r.event(d, "computed")), append(reduced, r.event(d, "reduced"))
		weights, gradients = append(weights, r.alloc(d, "weights", 4*size)), append(gradients, r.alloc(d, "gradients", 4*size))
		arrays = append(arrays, gpu.All(gradients[i]))
		put(r, compute[i], weights[i], 0, fill(size, func(k int) float32 { return float32(k) }))
	}
	want := fill(size, func(k int) float32 { return float32(k) })
	for range steps {
		for i := range devices {
			r.must(compute[i].Fill(gpu.All(gradients[i]), math.Float32bits(float32(i+1))))
			r.step(compute[i], gradients[i], weights[i]) // the gradient is weight + i + 1
			r.link(compute[i], reduce[i], computed[i])
		}
		r.must(group.AllReduce(reduce, arrays))
		for i := range devices {
			r.link(reduce[i], compute[i], reduced[i])
			r.step(compute[i], weights[i], gradients[i])
		}
		for k := range want {
			want[k] += n*want[k] + n*(n+1)/2
		}
	}
	for i := range devices {
		equal(r, "weights", get[float32](r, compute[i], weights[i], 0, size), want)
	}
}
