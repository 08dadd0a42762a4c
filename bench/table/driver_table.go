package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"

	"aibox/sparsetable"
)

var (
	memoryDriver = driver{name: "memory", about: "sparsetable, kind memory, no budget", inMemory: true, shared: true, listens: true,
		open: func(ctx context.Context, o openOptions) (store, error) {
			o.BudgetBytes, o.Dir = 0, ""
			return openTable(ctx, sparsetable.KindMemory, o)
		}}
	ssdDriver = driver{name: "ssd", about: "sparsetable, kind ssd; the policies are --policy, direct I/O", restoresHot: true, snapshots: true, shared: true, listens: true, policies: true,
		open: func(ctx context.Context, o openOptions) (store, error) { return openTable(ctx, sparsetable.KindSSD, o) }}
)

// tableStore drives a sparsetable.Table.
type tableStore struct {
	t     sparsetable.Table
	start sparsetable.Stats // right after it was opened

	pending chan error // of the snapshot being written, once it is; nil: none
}

func openTable(ctx context.Context, kind string, o openOptions) (store, error) {
	so := sparsetable.Options{
		Kind: kind, Dir: o.Dir, Layout: o.Layout, MemoryBytes: o.BudgetBytes,
		Init:   func(key uint64, row []float32) { initRow(o.Layout, key, row) },
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if kind == sparsetable.KindSSD {
		so.SSD.CachePolicy = o.Policy
		if o.Loading {
			so.SSD.HotBytes = -1
		}
	}
	t, err := sparsetable.Open(ctx, so)
	if err != nil {
		return nil, err
	}
	return &tableStore{t: t, start: t.Stats()}, nil
}

// Load imports the rows. A table on SSD writes all of them to buckets, so that
// the next phase begins with nothing in memory.
func (s *tableStore) Load(ctx context.Context, n int, row func(int, []float32) uint64) error {
	_, err := s.t.Import(ctx, &loadSource{n: n, row: row, buf: make([]float32, s.t.Layout().Words())})
	if f, ok := s.t.(sparsetable.Flusher); ok && err == nil {
		err = f.Flush(ctx)
	}
	return err
}

type loadSource struct {
	n, i int
	row  func(int, []float32) uint64
	buf  []float32
}

// Next implements sparsetable.RowSource.
func (s *loadSource) Next() (uint64, []float32, error) {
	if s.i == s.n {
		return 0, nil, io.EOF
	}
	key := s.row(s.i, s.buf)
	s.i++
	return key, s.buf, nil
}

func (s *tableStore) Pull(ctx context.Context, keys []uint64) (rows, error) {
	ws, err := s.t.Pull(ctx, keys, sparsetable.PullCreate)
	if err != nil {
		return nil, err
	}
	return ws, nil
}

// Push releases the rows, which were updated in place.
func (s *tableStore) Push(_ context.Context, _ []uint64, r rows) error {
	r.(*sparsetable.WorkingSet).Release()
	return nil
}

func (s *tableStore) Announce(keys []uint64) { s.t.Announce(keys) }

func (s *tableStore) Lookahead(keys int) int { return s.t.Lookahead(keys) }

// Snapshot starts a snapshot, which then becomes the only one.
func (s *tableStore) Snapshot(ctx context.Context) error {
	if err := s.settle(); err != nil {
		return err
	}
	p, err := s.t.Snapshot(ctx, nil)
	if err != nil {
		return err
	}
	s.pending = make(chan error, 1)
	go func() { s.pending <- s.commit(p) }()
	return nil
}

// commit waits for a snapshot and drops those before it.
func (s *tableStore) commit(p *sparsetable.PendingSnapshot) error {
	info, err := p.Wait()
	if err != nil {
		return err
	}
	list, err := s.t.Snapshots()
	if err != nil {
		return err
	}
	for _, old := range list {
		if old.ID != info.ID {
			if err := s.t.DropSnapshot(old.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle waits for the snapshot being written, if there is one.
func (s *tableStore) settle() error {
	if s.pending == nil {
		return nil
	}
	err := <-s.pending
	s.pending = nil
	return err
}

func (s *tableStore) Snapshotting() bool { return s.pending != nil && len(s.pending) == 0 }

func (s *tableStore) Save(ctx context.Context) error {
	return errors.Join(s.Snapshot(ctx), s.settle())
}

func (s *tableStore) Counters() counters {
	st := s.t.Stats()
	own := statsMap(st)
	own["at_open"] = statsMap(s.start)
	return counters{DeviceReads: st.DeviceReads, Own: own}
}

// statsMap is the statistics under their names in JSON.
func statsMap(st sparsetable.Stats) map[string]any {
	m := map[string]any{}
	b, err := json.Marshal(st)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		panic(err) // a struct of numbers and strings
	}
	return m
}

func (s *tableStore) Close() error { return errors.Join(s.settle(), s.t.Close()) }
