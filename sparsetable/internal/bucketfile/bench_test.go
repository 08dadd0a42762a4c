package bucketfile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/sparsetable/internal/blockio"
)

// benchSet opens a Set on a real directory with rows of 64 bytes of embedding
// and 16 of state.
func benchSet(b *testing.B) *Set {
	dev, err := blockio.Open(b.Context(), b.TempDir(), blockio.Options{Logger: quiet()})
	must(b, err)
	opts := Options{Table: testTable, RowWords: 20, Devices: []blockio.Device{dev}, Logger: quiet()}
	set, err := Open(b.Context(), State{}, nil, opts)
	must(b, err)
	b.Cleanup(func() {
		must(b, set.Close())
		must(b, dev.Close())
	})
	return set
}

const benchRows = 22 // of 88 bytes with their keys: 4 units of 512 with the header

func appendBench(b *testing.B, set *Set, slot uint32, row []float32) Location {
	a, err := set.Begin(slot, benchRows, false)
	must(b, err)
	for i := range benchRows {
		a.Put(uint64(i), row)
	}
	loc, err := a.Commit()
	must(b, err)
	return loc
}

// BenchmarkAppend appends buckets, each of which supersedes one of 100,000 others, as fast as the
// device writes them.
func BenchmarkAppend(b *testing.B) {
	set := benchSet(b)
	row := make([]float32, 20)
	index := make([]Location, 100_000)
	b.SetBytes(2048)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		slot := uint32(i % len(index))
		loc := appendBench(b, set, slot, row)
		must(b, set.Release(index[slot]))
		index[slot] = loc
	}
	must(b, set.Flush(b.Context()))
}

// BenchmarkFetch reads random buckets of 2 KiB from 400 MB in batches of 8,000, which is the number
// of missing keys of a pass.
func BenchmarkFetch(b *testing.B) {
	set := benchSet(b)
	row := make([]float32, 20)
	index := make([]Location, 200_000)
	for slot := range index {
		index[slot] = appendBench(b, set, uint32(slot), row)
	}
	must(b, set.Flush(b.Context()))
	q := set.NewQueue()
	rng := rand.New(rand.NewPCG(1, 2))
	reqs := make([]*Request, 8000)
	for i := range reqs {
		reqs[i] = &Request{}
	}
	done := make([]*Request, 0, len(reqs))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for _, r := range reqs {
			r.Slot = uint32(rng.IntN(len(index)))
			r.Location = index[r.Slot]
		}
		q.Submit(reqs)
		for q.Pending() > 0 {
			done = q.Wait(done[:0], 64)
			for _, r := range done {
				must(b, r.Err)
			}
			q.Finish(done)
			n += len(done)
		}
	}
	reads, bytes := q.DeviceReads()
	s := b.Elapsed().Seconds()
	b.ReportMetric(float64(n)/s, "buckets/s")
	b.ReportMetric(float64(reads)/s, "reads/s")
	b.ReportMetric(float64(bytes)/float64(reads), "B/read")
}

// BenchmarkCandidates chooses which of many files to empty next, which happens for every append
// buffer: by examining each file, and by sorting all of them.
func BenchmarkCandidates(b *testing.B) {
	for _, n := range []uint32{256, 4096} {
		s := &Set{}
		s.dirs = []*directory{newDirectory(s, 0, nil, 0)}
		s.mu.files = map[uint32]*file{}
		for id := range n {
			f := &file{set: s, dir: s.dirs[0], id: id + 1, bytes: 1 << 27, valid: 1 << 27, live: int64(id*7919%n) << 12, ended: true}
			f.written.Store(f.valid)
			s.mu.files[f.id] = f
		}
		b.Run(fmt.Sprintf("files=%d/each", n), func(b *testing.B) {
			for b.Loop() {
				var first Candidate
				s.EachCandidate(func(c Candidate) {
					if first.File == 0 || c.Compare(first) < 0 {
						first = c
					}
				})
			}
		})
		b.Run(fmt.Sprintf("files=%d/sorted", n), func(b *testing.B) {
			for b.Loop() {
				_ = s.CompactionCandidates()[0]
			}
		})
		b.Run(fmt.Sprintf("files=%d/space", n), func(b *testing.B) {
			for b.Loop() {
				_, _ = s.Space()
			}
		})
	}
}
