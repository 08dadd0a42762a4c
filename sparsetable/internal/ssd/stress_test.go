package ssd_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

var stressLayout = tabletest.CountLayout

// stressed is a table in training, together with the rows that it must have.
type stressed struct {
	t      *testing.T
	disk   *ssdDisk
	table  sparsetable.Table
	opts   sparsetable.Options
	values map[uint64]float32 // by key, of the first word
	saved  map[uint64]map[uint64]float32
}

func (s *stressed) open() {
	s.t.Helper()
	o := s.opts
	o.FS = s.disk
	k := ssdKindWith(o.SSD)
	tab, err := k.Open(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.table = tab
}

func (s *stressed) check(want map[uint64]float32) {
	s.t.Helper()
	rows := 0
	seen := map[uint64]bool{}
	err := s.table.Scan(s.t.Context(), func(key uint64, row []float32) error {
		rows++
		if seen[key] {
			return fmt.Errorf("key %d is there twice", key)
		}
		seen[key] = true
		if row[0] != want[key] {
			return fmt.Errorf("key %d holds %v, want %v", key, row[0], want[key])
		}
		return nil
	})
	if err != nil || rows != len(want) {
		s.t.Fatalf("%d rows, want %d: %v", rows, len(want), err)
	}
	if n := s.table.Stats().Rows; n < int64(len(want)) {
		s.t.Fatalf("%d rows counted, want %d at least", n, len(want))
	}
}

// train runs steps of training. Another goroutine pulls ahead, and snapshots are taken in between,
// of which the last two are kept.
func (s *stressed) train(seed uint64, steps, keys, batch int) {
	s.t.Helper()
	type pass struct {
		keys []uint64
		ws   *sparsetable.WorkingSet
	}
	passes := make(chan pass, 2)
	var pullErr error
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		defer close(passes)
		rng := rand.New(rand.NewPCG(seed, 5))
		zipf := rand.NewZipf(rng, 1.1, 10, uint64(keys-1))
		var ahead [][]uint64
		for range steps {
			for len(ahead) < 4 {
				have := map[uint64]bool{}
				var ks []uint64
				for len(ks) < batch {
					k := zipf.Uint64() * 0x9e3779b97f4a7c15
					if !have[k] {
						have[k] = true
						ks = append(ks, k)
					}
				}
				s.table.Announce(ks)
				ahead = append(ahead, ks)
			}
			ks := ahead[0]
			ahead = ahead[1:]
			ws, err := s.table.Pull(s.t.Context(), ks, sparsetable.PullCreate)
			if err != nil {
				pullErr = err
				return
			}
			select {
			case passes <- pass{ks, ws}:
			case <-stop:
				ws.Release()
				return
			}
		}
	})
	fail := func(err error) {
		s.t.Helper()
		close(stop)
		s.t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 6))
	var pending *sparsetable.PendingSnapshot
	var expect map[uint64]float32
	collect := func() {
		if pending == nil {
			return
		}
		info, err := pending.Wait()
		pending = nil
		if err != nil {
			fail(err)
		}
		if info.Rows != int64(len(expect)) {
			fail(fmt.Errorf("snapshot of %d rows, want %d", info.Rows, len(expect)))
		}
		s.saved[info.ID] = expect
		for len(s.saved) > 2 {
			oldest := info.ID
			for id := range s.saved {
				oldest = min(oldest, id)
			}
			if err := s.table.DropSnapshot(oldest); err != nil {
				fail(err)
			}
			delete(s.saved, oldest)
		}
	}
	for p := range passes {
		for i, k := range p.keys {
			row := p.ws.Row(i)
			if row[0] != s.values[k] {
				fail(fmt.Errorf("seed %d: key %d holds %v, want %v", seed, k, row[0], s.values[k]))
			}
			if rng.IntN(8) == 0 {
				continue // pulled, not trained
			}
			v := float32(rng.IntN(1 << 20))
			row[0] = v
			st := stressLayout.Stats(row)
			st.Count++
			stressLayout.SetStats(row, st)
			s.values[k] = v
		}
		if rng.IntN(5) == 0 {
			collect()
			expect = make(map[uint64]float32, len(s.values))
			maps.Copy(expect, s.values)
			var err error
			if pending, err = s.table.Snapshot(s.t.Context(), nil); err != nil {
				fail(err)
			}
		}
		p.ws.Release()
	}
	wg.Wait()
	if pullErr != nil {
		s.t.Fatalf("seed %d: %v", seed, pullErr)
	}
	collect()
}

// TestSSDStress trains with a cache far smaller than the table while the background writer and
// compaction run, and continues after crashes.
func TestSSDStress(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		policies := sparsetable.CachePolicies()
		s := &stressed{t: t, disk: newSSDDisk(1 + int(seed%2)), values: map[uint64]float32{}, saved: map[uint64]map[uint64]float32{}}
		s.opts = sparsetable.Options{Layout: stressLayout, SSD: sparsetable.SSDOptions{
			CachePolicy: policies[int(seed)%len(policies)], DirBudgetBytes: 24 << 20,
		}}
		for i := range s.disk.devices {
			s.opts.SSD.Dirs = append(s.opts.SSD.Dirs, fmt.Sprintf("/ssd%d", i))
		}
		s.opts.MemoryBytes = smallest(stressLayout, s.opts.SSD, 6000)
		s.open()
		for round := range 3 {
			s.train(seed*10+uint64(round), 150, 30000, 800)
			s.check(s.values)
			st := s.table.Stats()
			t.Logf("seed %d, %s, round %d: %+v", seed, s.opts.SSD.CachePolicy, round, st)
			if st.MemoryBytes > st.BudgetBytes {
				t.Errorf("%d bytes with a budget of %d", st.MemoryBytes, st.BudgetBytes)
			}
			rng := rand.New(rand.NewPCG(seed, uint64(round)))
			after := s.disk.Crash(rng).(*ssdDisk)
			if err := s.table.Close(); err != nil {
				t.Fatal(err)
			}
			if n := s.disk.OpenFiles(); n != 0 {
				t.Errorf("%d files are still open", n)
			}
			s.disk = after
			s.open()
			newest := uint64(0)
			for id := range s.saved {
				newest = max(newest, id)
			}
			s.values = map[uint64]float32{}
			maps.Copy(s.values, s.saved[newest])
			s.check(s.values)
		}
		if err := s.table.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
