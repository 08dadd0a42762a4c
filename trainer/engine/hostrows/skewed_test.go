package hostrows

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/trainer/engine"
)

// Of a mini-batch of skewed.
const skewedExamples, skewedFields = 16384, 26

// skewed draws a mini-batch like those of logs: one value in each bag, whose frequencies follow
// Zipf's law, in fields of 3, 10, 100, … different values, so that a few rows have most of the
// occurrences. Known are the numbers of keys in the pass, of which it adds new ones.
func skewed(rng *rand.Rand, known map[uint64]int32) *reader.Batch {
	sizes := []uint64{3, 10, 100, 1000, 10_000, 100_000, 1_000_000}
	var values []*rand.Zipf
	for f := range skewedFields {
		values = append(values, rand.NewZipf(rng, 1.1, 1, sizes[f%len(sizes)]-1))
	}
	x, rows := &reader.Batch{N: skewedExamples, Offsets: []int32{0}}, map[int32]int32{}
	for range skewedExamples {
		x.Labels = append(x.Labels, float32(rng.IntN(2)))
		for f := range skewedFields {
			key := uint64(f)<<32 | values[f].Uint64()
			if _, ok := known[key]; !ok {
				known[key] = int32(len(known))
			}
			row, ok := rows[known[key]]
			if !ok {
				row = int32(len(x.Rows))
				rows[known[key]], x.Rows = row, append(x.Rows, known[key])
			}
			x.Index = append(x.Index, row)
			x.Offsets = append(x.Offsets, int32(len(x.Index)))
		}
	}
	x.Invert(len(x.Rows))
	return x
}

// BenchmarkSkewed is the work of a step on the rows of a mini-batch like Criteo's. For 16 threads
// it says how long the work takes that is handed to a thread at once, in milliseconds: all of it
// (work-ms), the largest part (part-ms), and what it takes 16 threads that take the parts in order
// (on16-ms); each in the fastest step, since a part that is interrupted takes longer.
func BenchmarkSkewed(b *testing.B) {
	const examples, fields, dim, batches = skewedExamples, skewedFields, 16, 4
	rng := rand.New(rand.NewPCG(1, 0))
	known := map[uint64]int32{}
	var xs []*reader.Batch
	for range batches {
		xs = append(xs, skewed(rng, known))
	}
	r := newRows(b, rng, fields, dim, len(known))
	v := &Bags{fields: fields, dim: dim}
	pooled, dy := make([]float32, examples*fields*dim), make([]float32, examples*fields*dim)
	for i := range dy {
		dy[i] = float32(rng.NormFloat64())
	}
	var m meter
	for _, task := range []*func(lo, hi int){&r.countTask, &r.collectTask, &r.sumTask, &r.updateTask} {
		*task = m.of(*task)
	}
	var values []float32
	const grain = 32
	pool := m.of(func(lo, hi int) {
		v.Pool(lo*grain, (hi-lo)*grain, pooled[lo*grain*fields*dim:], fields*dim, values)
	})
	stages := []struct {
		name string
		run  func(x *reader.Batch)
	}{
		{"Collect", func(x *reader.Batch) { values = r.Collect(x) }},
		{"Pool", func(x *reader.Batch) {
			in := (&engine.Batch{Batch: x}).Inputs(values, 1)
			v.Set(&in)
			kernel.Parallel(examples/grain, 1, pool)
		}},
		{"Update", func(*reader.Batch) {
			r.state.Step++
			if err := r.Update(v, Gradients{Data: dy, Stride: fields * dim}, 1); err != nil {
				b.Fatal(err)
			}
		}},
	}
	for measured, stage := range stages {
		b.Run(stage.name, func(b *testing.B) {
			defer kernel.SetThreads(0)
			kernel.SetThreads(16)
			work, part, on16 := time.Hour, time.Hour, time.Hour
			b.StopTimer()
			for i := range b.N {
				for s := range stages {
					m.parts = m.parts[:0]
					if s == measured {
						b.StartTimer()
					}
					stages[s].run(xs[i%batches])
					b.StopTimer()
					if s == measured {
						sum, largest, took := m.on16()
						work, part, on16 = min(work, sum), min(part, largest), min(on16, took)
					}
				}
			}
			b.ReportMetric(work.Seconds()*1e3, "work-ms")
			b.ReportMetric(part.Seconds()*1e3, "part-ms")
			b.ReportMetric(on16.Seconds()*1e3, "on16-ms")
		})
	}
}

// meter measures the parts of parallel work.
type meter struct {
	tasks int
	mu    sync.Mutex
	parts []struct {
		task, lo int
		took     time.Duration
	}
}

// of returns task, measured.
func (m *meter) of(task func(lo, hi int)) func(lo, hi int) {
	m.tasks++
	number := m.tasks
	return func(lo, hi int) {
		began := time.Now()
		task(lo, hi)
		took := time.Since(began)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.parts = append(m.parts, struct {
			task, lo int
			took     time.Duration
		}{number, lo, took})
	}
}

// on16 returns how long all parts take, the largest of them, and 16 threads that take the parts of
// one task after the other in order.
func (m *meter) on16() (sum, largest, took time.Duration) {
	for task := range m.tasks + 1 {
		busy := make([]time.Duration, 16)
		slices.SortFunc(m.parts, func(a, b struct {
			task, lo int
			took     time.Duration
		}) int {
			return a.lo - b.lo
		})
		for _, p := range m.parts {
			if p.task == task {
				sum, largest = sum+p.took, max(largest, p.took)
				first := slices.Index(busy, slices.Min(busy))
				busy[first] += p.took
			}
		}
		took += slices.Max(busy)
	}
	return sum, largest, took
}
