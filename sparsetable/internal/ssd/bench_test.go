package ssd_test

import (
	"math/rand/v2"
	"testing"

	"aibox/sparsetable"
)

// BenchmarkSSDPull trains on skewed keys over a table on a real directory, the
// one of TMPDIR: a batch of 8192 unique keys is pulled, touched and released.
func BenchmarkSSDPull(b *testing.B) {
	const keys, batch = 2_000_000, 8192
	for _, c := range []struct {
		name   string
		budget int64
		skewed bool
	}{{"cached", 512 << 20, true}, {"skewed/32MiB", 32 << 20, true}, {"uniform/64MiB", 64 << 20, false}} {
		b.Run(c.name, func(b *testing.B) {
			l := sparsetable.Layout{ValueDim: 16, StateDim: 4}
			tab, err := sparsetable.Open(b.Context(), sparsetable.Options{
				Kind: sparsetable.KindSSD, Dir: b.TempDir(), Layout: l, MemoryBytes: c.budget,
			})
			if err != nil {
				b.Fatal(err)
			}
			train := func(ks []uint64) {
				ws, err := tab.Pull(b.Context(), ks, sparsetable.PullCreate)
				if err != nil {
					b.Fatal(err)
				}
				for i := range ws.Len() {
					touchRow(l, ws.Row(i))
				}
				ws.Release()
			}
			ks := make([]uint64, batch)
			for at := 0; at < keys; at += batch {
				for i := range ks {
					ks[i] = uint64(at+i) * 0x9e3779b97f4a7c15
				}
				train(ks)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			zipf := rand.NewZipf(rng, 1.125, 30, keys-1)
			have := map[uint64]bool{}
			before := tab.Stats()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				clear(have)
				for i := range ks {
					for {
						k := rng.Uint64N(keys)
						if c.skewed {
							k = zipf.Uint64()
						}
						if !have[k] {
							have[k] = true
							ks[i] = k * 0x9e3779b97f4a7c15
							break
						}
					}
				}
				b.StartTimer()
				train(ks)
			}
			b.StopTimer()
			st := tab.Stats()
			n := float64(b.N)
			b.ReportMetric(n*batch/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(st.DeviceReads-before.DeviceReads)/n, "reads/op")
			b.ReportMetric(float64(st.DeviceReads-before.DeviceReads)/b.Elapsed().Seconds()/1e3, "kreads/s")
			b.ReportMetric(float64(st.Hits-before.Hits)/float64(st.Lookups-before.Lookups), "hits")
			b.ReportMetric(st.WriteAmplification, "WA")
			b.ReportMetric(st.SpaceAmplification, "SA")
			if err := tab.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func touchRow(l sparsetable.Layout, row []float32) {
	row[0]++
	st := l.Stats(row)
	st.Count++
	l.SetStats(row, st)
}
