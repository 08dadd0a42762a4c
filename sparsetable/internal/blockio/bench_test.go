package blockio_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"aibox/sparsetable/internal/blockio"
)

var fileMiB = flag.Int("file-mib", 256, "size of the benchmarks' file; larger than the device's cache for real figures")

// BenchmarkRandomRead reads random blocks with direct I/O. As many reads are in flight as the queue
// holds, and it is refilled in batches. busy keeps every processor of the Go runtime occupied with
// other work, as training does.
func BenchmarkRandomRead(b *testing.B) {
	for _, busy := range []bool{false, true} {
		for _, engine := range []string{"io_uring", "pread"} {
			for _, depth := range []int{32, 128, 256, 1024} {
				for _, size := range []int{512, 4096} {
					b.Run(fmt.Sprintf("busy=%v/%s/depth=%d/bytes=%d", busy, engine, depth, size), func(b *testing.B) {
						benchmarkRead(b, engine, depth, size, busy)
					})
				}
			}
		}
	}
}

func benchmarkRead(b *testing.B, engine string, depth, size int, busy bool) {
	d, err := blockio.Open(b.Context(), b.TempDir(), blockio.Options{Engine: engine, QueueDepth: depth})
	if err != nil {
		b.Skip(err)
	}
	defer func() { _ = d.Close() }()
	if size%d.Unit() != 0 {
		b.Skipf("the unit is %d bytes", d.Unit())
	}
	pool := blockio.NewPool(d.Unit(), 0)
	defer pool.Close()
	f, err := d.Create("data")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	chunk, err := pool.Get(4 << 20)
	if err != nil {
		b.Fatal(err)
	}
	for i := range chunk {
		chunk[i] = byte(i * 31)
	}
	total := int64(*fileMiB) << 20
	for at := int64(0); at < total; at += int64(len(chunk)) {
		if _, err := f.WriteAt(chunk, at); err != nil {
			b.Fatal(err)
		}
	}
	pool.Put(chunk)
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}

	// Twice the depth is submitted, so that the queue is never empty.
	var c blockio.Completions
	idle := make([]*blockio.Read, 2*depth)
	for i := range idle {
		buf, err := pool.Get(size)
		if err != nil {
			b.Fatal(err)
		}
		idle[i] = &blockio.Read{File: f, Buf: buf}
	}
	all := append([]*blockio.Read(nil), idle...)
	defer func() {
		for _, r := range all {
			pool.Put(r.Buf)
		}
	}()
	var stop atomic.Bool
	var others sync.WaitGroup
	defer others.Wait()
	defer stop.Store(true)
	if busy {
		for range runtime.GOMAXPROCS(0) {
			others.Go(func() {
				for x := uint64(1); !stop.Load(); {
					for range 1 << 16 {
						x ^= x<<13 ^ x>>7
					}
				}
			})
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	started := 0
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(len(idle), b.N-started)
		for _, r := range idle[:n] {
			r.Offset = rng.Int64N(total/int64(size)) * int64(size)
		}
		d.Submit(&c, idle[:n])
		started += n
		idle = c.Wait(idle[n:], min(32, b.N-done))
		// What Wait returned includes idle reads only at the very end.
		for _, r := range idle {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
		}
		done = started - c.Pending()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
	b.ReportMetric(float64(d.Stats().EngineCalls)/float64(b.N), "calls/read")
}
