package tabletest

import (
	"io"
	"slices"
	"testing"

	"aibox/sparsetable"
)

// state is the contents of a table as a Go map; it has trained rows only.
type state map[uint64][]float32

func (s state) clone() state {
	c := make(state, len(s))
	for k, row := range s {
		c[k] = slices.Clone(row)
	}
	return c
}

type savedState struct {
	rows   state
	record []byte
}

type pinnedSet struct {
	keys []uint64
	set  *sparsetable.WorkingSet
}

// check compares the whole table.
func (r *runner) check() {
	r.note("check")
	seen := state{}
	err := r.table.Scan(r.t.Context(), func(key uint64, row []float32) error {
		if seen[key] != nil {
			r.fatalf("Scan shows key %d twice", key)
		}
		seen[key] = slices.Clone(row)
		return nil
	})
	if err != nil {
		r.fatalf("Scan: %v", err)
	}
	r.compare("Scan", seen, r.rows)
	got, err := sparsetable.Digest(r.t.Context(), r.table)
	if err != nil {
		r.fatalf("Digest: %v", err)
	}
	if want := digestOf(r.t, r.layout, r.rows); got != want {
		r.fatalf("digest %x, want %x", got, want)
	}
}

func (r *runner) compare(what string, got, want state) {
	for key, row := range want {
		if !equalRows(got[key], row) {
			r.fatalf("%s: key %d holds %v, want %v", what, key, got[key], row)
		}
	}
	if len(got) != len(want) {
		r.fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

// digestOf is the digest of a new table with these rows.
func digestOf(t *testing.T, layout sparsetable.Layout, rows state) [32]byte {
	t.Helper()
	tab, err := sparsetable.Open(t.Context(), sparsetable.Options{Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close() //nolint:errcheck // nothing of it is kept
	if _, err := tab.Import(t.Context(), rows.source()); err != nil {
		t.Fatal(err)
	}
	d, err := sparsetable.Digest(t.Context(), tab)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// source yields the rows of s in descending order of the keys, unlike any
// table's own order.
func (s state) source() sparsetable.RowSource {
	src := &stateSource{rows: s}
	for k := range s {
		src.keys = append(src.keys, k)
	}
	slices.Sort(src.keys)
	return src
}

type stateSource struct {
	keys []uint64
	rows state
	err  error // at the end, instead of io.EOF
}

func (s *stateSource) Next() (uint64, []float32, error) {
	n := len(s.keys) - 1
	if n < 0 {
		if s.err != nil {
			return 0, nil, s.err
		}
		return 0, nil, io.EOF
	}
	k := s.keys[n]
	s.keys = s.keys[:n]
	return k, s.rows[k], nil
}
