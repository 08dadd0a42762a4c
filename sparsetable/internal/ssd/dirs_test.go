package ssd_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/tabletest"
)

// readBarrier delays the first reads of buckets on each of several devices until every device has
// one.
type readBarrier struct {
	waiting atomic.Int32 // devices without a read
	all     chan struct{}
	once    []sync.Once // of each device
}

// barrierDevice is a device that waits at a readBarrier.
type barrierDevice struct {
	*blocktest.Device
	n     int
	with  atomic.Pointer[readBarrier] // nil: none
	reads atomic.Int64
}

func (d *barrierDevice) Submit(c *blockio.Completions, reads []*blockio.Read) {
	d.reads.Add(int64(len(reads)))
	m := d.with.Load()
	if m == nil {
		d.Device.Submit(c, reads)
		return
	}
	m.once[d.n].Do(func() {
		if m.waiting.Add(-1) == 0 {
			close(m.all)
		}
	})
	// Whoever submits goes on, as with any device.
	c.Begin(reads)
	reads = slices.Clone(reads) // the slice is the caller's
	go func() {
		select {
		case <-m.all:
		case <-time.After(2 * time.Minute):
			for _, r := range reads {
				r.Err = errors.New("not all devices were given a read at a time")
			}
			blockio.Deliver(reads)
			return
		}
		for _, r := range reads {
			_, r.Err = r.File.ReadAt(r.Buf, r.Offset)
		}
		blockio.Deliver(reads)
	}()
}

// spread is a table over several devices in memory, whose rows are in buckets.
type spread struct {
	opts sparsetable.Options
	fs   *vfs.MemFS
	rows int
}

func newSpread(rows, dirs int) *spread {
	s := &spread{fs: vfs.NewMem(), rows: rows}
	s.opts = sparsetable.Options{Layout: outsideLayout, MemoryBytes: 64 << 20, SSD: sparsetable.SSDOptions{HotBytes: -1}}
	for i := range dirs {
		s.opts.SSD.Dirs = append(s.opts.SSD.Dirs, fmt.Sprintf("/ssd%d", i))
	}
	return s
}

func (s *spread) fill(tb testing.TB, devices []blockio.Device) {
	tb.Helper()
	tab := s.open(tb, devices)
	src := &spreadRows{n: s.rows, row: make([]float32, outsideLayout.Words())}
	if _, err := tab.Import(tb.Context(), src); err != nil {
		tb.Fatal(err)
	}
	if err := tab.(sparsetable.Flusher).Flush(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	p, err := tab.Snapshot(tb.Context(), nil)
	if err == nil {
		_, err = p.Wait()
	}
	if err == nil {
		err = tab.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func (s *spread) open(tb testing.TB, devices []blockio.Device) sparsetable.Table {
	tb.Helper()
	tab, err := openOn(tb.Context(), s.opts, devices, s.fs)
	if err != nil {
		tb.Fatal(err)
	}
	return tab
}

// spreadRows are n trained rows.
type spreadRows struct {
	n, at int
	row   []float32
}

func (r *spreadRows) Next() (uint64, []float32, error) {
	if r.at == r.n {
		return 0, nil, io.EOF
	}
	r.row[0] = float32(r.at)
	outsideLayout.SetStats(r.row, sparsetable.RowStats{Count: 1})
	r.at++
	return tabletest.SpreadKey(r.at - 1), r.row, nil
}

// TestSSDDirectoriesTogether checks that a Pull has reads in flight on all devices at the same
// time, and submits about as many to each.
func TestSSDDirectoriesTogether(t *testing.T) {
	const dirs, rows = 3, 30_000
	s := newSpread(rows, dirs)
	all := make([]*barrierDevice, dirs)
	devices := make([]blockio.Device, dirs)
	for i := range devices {
		all[i] = &barrierDevice{n: i, Device: blocktest.New(blocktest.Options{Dir: s.opts.SSD.Dirs[i], Seed: uint64(i)})}
		devices[i] = all[i]
	}
	s.fill(t, devices)
	tab := s.open(t, devices)
	defer tab.Close()
	rng := testseed.Rand(t)
	for range 5 {
		m := &readBarrier{all: make(chan struct{}), once: make([]sync.Once, dirs)}
		m.waiting.Store(dirs)
		for _, d := range all {
			d.with.Store(m)
			d.reads.Store(0)
		}
		keys := make([]uint64, 0, 3000)
		for _, i := range rng.Perm(rows)[:3000] {
			keys = append(keys, tabletest.SpreadKey(i))
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
		if err != nil {
			t.Fatal(err)
		}
		ws.Release()
		reads := make([]int64, dirs)
		sum := int64(0)
		for i, d := range all {
			reads[i] = d.reads.Load()
			sum += reads[i]
		}
		for _, n := range reads {
			if sum < 300 || n < sum/dirs*8/10 || n > sum/dirs*12/10 {
				t.Errorf("reads of the devices: %d", reads)
			}
		}
	}
}

// BenchmarkSSDDirectories pulls rows that are not in memory, from a table over one, two and four
// devices of 20,000 reads/s each.
func BenchmarkSSDDirectories(b *testing.B) {
	const rows, batch, rate = 400_000, 4096, 20_000
	for _, dirs := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("dirs=%d", dirs), func(b *testing.B) {
			s := newSpread(rows, dirs)
			inner, limited := make([]blockio.Device, dirs), make([]blockio.Device, dirs)
			for i := range inner {
				inner[i] = blocktest.New(blocktest.Options{Dir: s.opts.SSD.Dirs[i], Seed: uint64(i)})
				limited[i] = blocktest.NewLimited(inner[i], rate)
			}
			s.fill(b, inner)
			s.opts.MemoryBytes, s.opts.SSD.CachePolicy = 12<<20, "history" // a twentieth of the rows
			tab := s.open(b, limited)
			rng := rand.New(rand.NewPCG(1, uint64(dirs)))
			keys := make([]uint64, 0, batch)
			before := tab.Stats()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				keys = keys[:0]
				for have := map[int]bool{}; len(keys) < batch; {
					if i := rng.IntN(rows); !have[i] {
						have[i] = true
						keys = append(keys, tabletest.SpreadKey(i))
					}
				}
				b.StartTimer()
				ws, err := tab.Pull(b.Context(), keys, sparsetable.PullLookup)
				if err != nil {
					b.Fatal(err)
				}
				ws.Release()
			}
			b.StopTimer()
			st := tab.Stats()
			b.ReportMetric(float64(st.DeviceReads-before.DeviceReads)/b.Elapsed().Seconds(), "reads/s")
			b.ReportMetric(float64(st.BucketReads-before.BucketReads)/b.Elapsed().Seconds(), "buckets/s")
			if err := tab.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
