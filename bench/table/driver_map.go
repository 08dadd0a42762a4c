package main

import (
	"context"
	"fmt"
)

// mapDriver shows how fast a store can be that keeps everything in memory: it is a Go
// map from keys to the places of rows.
var mapDriver = driver{name: "map", about: "Go map, everything in memory", inMemory: true, open: openMap}

type mapStore struct {
	o     openOptions
	at    map[uint64]uint32
	slabs [][]float32
	used  int // rows
	refs  [3]mapRows
	next  int
}

// mapSlabRows is the number of rows that are allocated at once.
const mapSlabRows = 1 << 16

func openMap(_ context.Context, o openOptions) (store, error) {
	return &mapStore{o: o, at: map[uint64]uint32{}}, nil
}

// mapRows refers to rows where they are.
type mapRows struct {
	s  *mapStore
	at []uint32
}

func (r *mapRows) Row(i int) []float32 { return r.s.row(r.at[i]) }

func (s *mapStore) row(at uint32) []float32 {
	words := s.o.Layout.Words()
	off := int(at%mapSlabRows) * words
	return s.slabs[at/mapSlabRows][off : off+words : off+words]
}

func (s *mapStore) add(key uint64) uint32 {
	if s.used%mapSlabRows == 0 {
		s.slabs = append(s.slabs, make([]float32, mapSlabRows*s.o.Layout.Words()))
	}
	at := uint32(s.used)
	s.used++
	s.at[key] = at
	return at
}

func (s *mapStore) Load(ctx context.Context, n int, row func(int, []float32) uint64) error {
	scratch := make([]float32, s.o.Layout.Words())
	for i := range n {
		key := row(i, scratch)
		copy(s.row(s.add(key)), scratch)
	}
	return ctx.Err()
}

func (s *mapStore) Pull(ctx context.Context, keys []uint64) (rows, error) {
	r := &s.refs[s.next]
	s.next = (s.next + 1) % len(s.refs)
	r.s, r.at = s, r.at[:0]
	for _, k := range keys {
		at, ok := s.at[k]
		if !ok {
			at = s.add(k)
			initRow(s.o.Layout, k, s.row(at))
		}
		r.at = append(r.at, at)
	}
	return r, ctx.Err()
}

// Push has nothing to do: rows are updated where they are.
func (s *mapStore) Push(ctx context.Context, keys []uint64, r rows) error {
	if got := len(r.(*mapRows).at); got != len(keys) {
		return fmt.Errorf("map: %d rows for %d keys", got, len(keys))
	}
	return ctx.Err()
}

func (s *mapStore) Save(context.Context) error { return nil }

func (s *mapStore) Counters() counters { return counters{Own: map[string]any{"rows": s.used}} }

func (s *mapStore) Close() error { return nil }
