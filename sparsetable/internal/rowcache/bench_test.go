package rowcache

import (
	"math/rand/v2"
	"testing"
)

// In this benchmark, all rows are in the cache: batches of 27,600 unique keys of 300,000 cached
// ones are found, pinned, released and marked dirty, as on the trace of bench/policies.
func BenchmarkFindRelease(b *testing.B) {
	for _, policy := range Policies() {
		b.Run(policy, func(b *testing.B) {
			const rows, batch = 300_000, 27_600
			c := newCache(b, Options{Words: 20, MaxBytes: 64 << 20, Policy: policy, Hash: mix})
			keys := make([]uint64, rows)
			for i := range keys {
				keys[i] = uint64(i) * 0x9e3779b97f4a7c15
			}
			refs := make([]uint32, rows)
			hashes := hashesOf(keys)
			if n, err := c.Insert(keys, hashes, nil, refs, false); n != rows || err != nil {
				b.Fatal(n, err)
			}
			c.Release(refs, true)
			rng := rand.New(rand.NewPCG(1, 0))
			rng.Shuffle(rows, func(i, j int) {
				keys[i], keys[j] = keys[j], keys[i]
				hashes[i], hashes[j] = hashes[j], hashes[i]
			})
			b.ReportAllocs()
			at, n := 0, 0
			for b.Loop() {
				at = (at + batch) % (rows - batch)
				if c.Find(-1, keys[at:at+batch], hashes[at:at+batch], refs[:batch]) != batch {
					b.Fatal("not all found")
				}
				c.Release(refs[:batch], true)
				n++
			}
			b.ReportMetric(float64(n)*batch/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// In this benchmark, the cache is full: each batch pulls rows of which a third is new, and victims
// make room for them.
func BenchmarkEvict(b *testing.B) {
	for _, policy := range Policies() {
		b.Run(policy, func(b *testing.B) {
			const batch = 9_000
			c := newCache(b, Options{Words: 20, MaxBytes: 64 << 20, Policy: policy, Hash: mix})
			keys, hashes := make([]uint64, batch), make([]uint64, batch)
			refs, victims := make([]uint32, batch), make([]uint32, 0, batch)
			next, n := uint64(0), 0
			b.ReportAllocs()
			for b.Loop() {
				for i := range keys {
					next++
					keys[i], hashes[i] = next, mix(next)
				}
				clear(refs)
				for done := 0; ; {
					added, err := c.Insert(keys, hashes, nil, refs, false)
					if err != nil {
						b.Fatal(err)
					}
					if done += added; done == batch {
						break
					}
					victims = c.Victims(batch-done, victims[:0])
					c.Drop(victims)
				}
				c.Release(refs, false)
				n++
			}
			b.ReportMetric(float64(n)*batch/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
