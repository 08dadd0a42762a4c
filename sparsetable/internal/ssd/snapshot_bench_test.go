package ssd_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// benchTable is a table on a real directory, the one of TMPDIR.
func benchTable(b *testing.B, l sparsetable.Layout, budget int64) sparsetable.Table {
	b.Helper()
	tab, err := sparsetable.Open(b.Context(), sparsetable.Options{
		Kind: sparsetable.KindSSD, Dir: b.TempDir(), Layout: l, MemoryBytes: budget,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := tab.Close(); err != nil {
			b.Error(err)
		}
	})
	return tab
}

func benchTrain(b *testing.B, tab sparsetable.Table, l sparsetable.Layout, keys []uint64) {
	ws, err := tab.Pull(b.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		b.Fatal(err)
	}
	for i := range ws.Len() {
		touchRow(l, ws.Row(i))
	}
	ws.Release()
}

// BenchmarkSSDSnapshotStall takes snapshots of a cache of 256 MiB that is full of dirty rows, with
// 30,000 rows pinned. It measures how long Snapshot takes to return, which is the time for which
// training waits.
func BenchmarkSSDSnapshotStall(b *testing.B) {
	const rows, batch, pinned = 1_000_000, 20_000, 30_000
	l := sparsetable.Layout{ValueDim: 16, StateDim: 4}
	tab := benchTable(b, l, 256<<20)
	var stalls []float64
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		for at := 0; at < rows; at += batch {
			benchTrain(b, tab, l, tabletest.KeysFrom(at, batch))
		}
		ws, err := tab.Pull(b.Context(), tabletest.KeysFrom(i, pinned), sparsetable.PullCreate)
		if err != nil {
			b.Fatal(err)
		}
		dirty := tab.Stats().DirtyRows
		start := time.Now()
		b.StartTimer()
		p, err := tab.Snapshot(b.Context(), nil)
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		stalls = append(stalls, float64(time.Since(start))/1e6)
		info, err := p.Wait()
		if err != nil {
			b.Fatal(err)
		}
		ws.Release()
		b.ReportMetric(float64(dirty), "dirty-rows")
		b.ReportMetric(float64(time.Since(start))/1e6, "written-ms")
		if err := tab.DropSnapshot(info.ID); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.StopTimer()
	slices.Sort(stalls)
	b.ReportMetric(stalls[len(stalls)/2], "stall-ms")
}

// BenchmarkSSDSnapshotShare trains 300 mini-batches of 10,000 skewed keys on a table that is larger
// than its cache, with a snapshot half-way. It measures the share of the training time that the
// snapshot cost, by waiting for Snapshot and by slower mini-batches until it was written.
func BenchmarkSSDSnapshotShare(b *testing.B) {
	const keys, batch, batches = 1_000_000, 10_000, 300
	l := sparsetable.Layout{ValueDim: 16, StateDim: 4}
	tab := benchTable(b, l, 64<<20)
	for at := 0; at < keys; at += batch {
		benchTrain(b, tab, l, tabletest.KeysFrom(at, batch))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(rng, 1.125, 30, keys-1)
	next := func() []uint64 {
		have := make(map[uint64]bool, batch)
		ks := make([]uint64, 0, batch)
		for len(ks) < batch {
			if k := tabletest.SpreadKey(1 + int(zipf.Uint64())); !have[k] {
				have[k] = true
				ks = append(ks, k)
			}
		}
		return ks
	}
	for range 30 {
		benchTrain(b, tab, l, next())
	}
	b.ResetTimer()
	for range b.N {
		var usual, during []time.Duration
		var stall time.Duration
		var p *sparsetable.PendingSnapshot
		written := make(<-chan struct{})
		for i := range batches {
			b.StopTimer()
			ks := next()
			b.StartTimer()
			if i == batches/2 {
				start := time.Now()
				var err error
				if p, err = tab.Snapshot(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
				stall, written = time.Since(start), p.Done()
			}
			start := time.Now()
			benchTrain(b, tab, l, ks)
			took := time.Since(start)
			select {
			case <-written:
				p, written = nil, make(<-chan struct{})
			default:
			}
			if p != nil {
				during = append(during, took)
			} else {
				usual = append(usual, took)
			}
		}
		if p != nil {
			if _, err := p.Wait(); err != nil {
				b.Fatal(err)
			}
		}
		mean := sum(usual) / time.Duration(len(usual))
		lost := stall + sum(during) - time.Duration(len(during))*mean
		total := float64(stall + sum(during) + sum(usual))
		b.ReportMetric(100*float64(stall)/total, "%stalled")
		b.ReportMetric(100*float64(lost)/total, "%lost")
		b.ReportMetric(float64(len(during)), "batches-during")
		b.ReportMetric(float64(mean)/1e6, "batch-ms")
	}
}

func sum(times []time.Duration) (s time.Duration) {
	for _, t := range times {
		s += t
	}
	return s
}
