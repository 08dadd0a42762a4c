package examples

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"aibox/reader/internal/parquetcolumn"
)

// Shared deduplicates the maps from a plan's columns to their places in files: thousands of files
// mostly have the same columns, and a Parquet leaf keeps a part of its file's footer in memory.
type Shared struct {
	plan *Plan

	mu     sync.Mutex
	leaves map[string]*Leaves
	cells  map[string]*CellMap
}

// NewShared returns an empty Shared.
func NewShared(p *Plan) *Shared {
	return &Shared{plan: p, leaves: map[string]*Leaves{}, cells: map[string]*CellMap{}}
}

// Find finds the plan's columns in a Parquet file.
func (s *Shared) Find(file *parquetcolumn.File) (*Leaves, error) {
	found, err := findLeaves(file, s.plan, PartitionsOf(file.URI()))
	var key strings.Builder
	for _, leaf := range found.all() {
		if leaf != nil {
			key.WriteString(leaf.Key())
		}
		key.WriteByte('\n')
	}
	return shared(&s.mu, s.leaves, key.String(), &found), errors.Join(err, file.Check(found.all()))
}

// MapCells is Plan.MapCells.
func (s *Shared) MapCells(uri string, header []string) (*CellMap, error) {
	m, err := s.plan.MapCells(uri, header)
	if err != nil {
		return nil, err
	}
	return shared(&s.mu, s.cells, fmt.Sprintf("%q %q", m.names, m.partition), m), nil
}

// shared returns the value known by that key, or stores and returns v.
func shared[T any](mu *sync.Mutex, known map[string]T, key string, v T) T {
	mu.Lock()
	defer mu.Unlock()
	if same, found := known[key]; found {
		return same
	}
	known[key] = v
	return v
}
