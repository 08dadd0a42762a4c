package spool

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/slots"
)

// stored is a store in new directories that counts the bytes that are reported to it.
type stored struct {
	*Store
	charged []int64
	written atomic.Int64
}

func newStore(t *testing.T, dirs int) *stored {
	s := &stored{charged: make([]int64, dirs)}
	s.Store = &Store{
		Table: 7, RowBytes: 24, Hash: slots.Hasher(5),
		Charge:  func(dir int, bytes int64) { s.charged[dir] += bytes },
		Written: func(bytes int64) { s.written.Add(bytes) },
	}
	for range dirs {
		d, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		s.Devices = append(s.Devices, d)
	}
	return s
}

func (s *stored) files(t *testing.T) (all []string) {
	t.Helper()
	for _, d := range s.Devices {
		names, err := d.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			all = append(all, filepath.Join(d.Dir(), n))
		}
	}
	return all
}

func arena(t *testing.T, bytes int) []byte {
	t.Helper()
	mem, err := offheap.Map(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := offheap.Unmap(mem); err != nil {
			t.Error(err)
		}
	})
	return mem
}

// fill adds n rows with keys that occur several times. The first value of a row is its number.
func fill(t *testing.T, st *stored, s *Spool, rng *rand.Rand, n int) map[uint64][]float32 {
	t.Helper()
	want := map[uint64][]float32{}
	row := make([]float32, st.RowBytes/4)
	for i := range n {
		key := rng.Uint64N(uint64(n))
		row[0], row[5] = float32(i), rng.Float32()
		want[key] = append(want[key], row[0])
		if err := s.Add(t.Context(), key, st.Hash.Of(key), row); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

// load loads all units of a table of n slots and returns the rows by key, in the order in
// which they were loaded.
func load(t *testing.T, st *stored, s *Spool, mem []byte, n uint32) (map[uint64][]float32, error) {
	t.Helper()
	units := s.Units(uint(bits.Len32(n)) - 1)
	plan, err := s.Plan(units, len(mem), n)
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64][]float32{}
	l, _ := s.NewLoader(plan, mem, n)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go l.Run(ctx, units)
	last := -1
	for a := range l.Loaded() {
		if a.Err != nil {
			return nil, a.Err
		}
		next := a.Slots(n)
		for slot, ok := next(); ok; slot, ok = next() {
			for _, at := range a.RowsOf(slot) {
				key, row := a.Entry(at, EntryBytes(st.RowBytes))
				mask := uint32(1)<<bits.Len32(n) - 1
				if want := uint32(st.Hash.Of(key)) & mask; want != slot && want&(mask>>1) != slot {
					t.Fatalf("key %d is in slot %d of %d", key, slot, n)
				}
				got[key] = append(got[key], row[0])
			}
		}
		u, ends := a.Unit, a.Ends
		l.Free(a)
		if ends {
			last++
			if u != &units[last] {
				t.Fatalf("unit %d is not the next one", last)
			}
			if err := s.Done(u); err != nil {
				return nil, err
			}
		}
	}
	if last != len(units)-1 {
		t.Errorf("%d units of %d", last+1, len(units))
	}
	return got, nil
}

// TestSpool checks that the loaded rows are those that were added, in that order for each key, for
// tables with fewer and with more slots than the spool has partitions. Afterwards no file may be
// left.
func TestSpool(t *testing.T) {
	rng := testseed.Rand(t)
	for _, dirs := range []int{1, 2, 3} {
		for _, n := range []uint32{1, 5, 64, 1000} {
			for _, rows := range []int{0, 1, 100, 30_000} {
				st := newStore(t, dirs)
				mem := arena(t, 2<<20)
				s, ok := st.New(mem, 4096, Place{ID: 9, Groups: 4})
				if !ok {
					t.Fatal("no room")
				}
				want := fill(t, st, s, rng, rows)
				if err := s.Finish(t.Context()); err != nil {
					t.Fatal(err)
				}
				if total := st.written.Load(); total != s.Bytes() || rows > 0 && total == 0 {
					t.Errorf("%d bytes written, %d in the spool", total, s.Bytes())
				}
				got, err := load(t, st, s, mem, n)
				if err != nil {
					t.Fatal(err)
				}
				for key := range want {
					if !slices.Equal(got[key], want[key]) {
						t.Fatalf("%d directories, %d slots, %d rows: key %d has %v, want %v", dirs, n, rows, key, got[key], want[key])
					}
				}
				if err := s.Close(); err != nil || len(got) != len(want) {
					t.Errorf("%d keys, want %d, %v", len(got), len(want), err)
				}
				if left := st.files(t); len(left) > 0 || slices.Max(st.charged) != 0 {
					t.Errorf("left over: %q, %d", left, st.charged)
				}
			}
		}
	}
}

// TestPart checks that a unit that is spooled again has its rows in smaller partitions.
func TestPart(t *testing.T) {
	rng := testseed.Rand(t)
	st := newStore(t, 2)
	mem := arena(t, 2<<20)
	s, _ := st.New(mem[:100<<10], 4096, Place{ID: 9, Groups: 4})
	want := fill(t, st, s, rng, 20_000)
	if err := s.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 1024
	if !s.Divisible(10) || s.Divisible(s.shape.Bits) {
		t.Fatalf("2^%d partitions", s.shape.Bits)
	}
	units := s.Units(10)
	buf := arena(t, s.BlockBytes())
	got := map[uint64][]float32{}
	for i := range units {
		sub, ok := st.New(mem[:200<<10], 4096, s.Part(uint64(10+i), &units[i]))
		if !ok {
			t.Fatal("no room")
		}
		if err := s.Copy(t.Context(), &units[i], sub, buf); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sub.Finish(t.Context()), s.Done(&units[i])); err != nil {
			t.Fatal(err)
		}
		part, err := load(t, st, sub, mem, n)
		if err != nil {
			t.Fatal(err)
		}
		for key, values := range part {
			got[key] = append(got[key], values...)
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for key := range want {
		if !slices.Equal(got[key], want[key]) {
			t.Fatalf("key %d has %v, want %v", key, got[key], want[key])
		}
	}
	if left := st.files(t); len(got) != len(want) || len(left) > 0 {
		t.Errorf("%d keys, want %d; left over: %q", len(got), len(want), left)
	}
}

// TestDamaged checks that a changed byte of a spool file is detected, and a file that is too short.
// Remove must delete what a crash has left.
func TestDamaged(t *testing.T) {
	for what, damage := range map[string]func(file string, size int64) error{
		"a byte": func(file string, size int64) error {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			data[50] ^= 1
			return os.WriteFile(file, data, 0o644)
		},
		"cut": func(file string, size int64) error { return os.Truncate(file, size-4096) },
	} {
		st := newStore(t, 2)
		mem := arena(t, 2<<20)
		s, _ := st.New(mem, 4096, Place{ID: 9, Groups: 4})
		fill(t, st, s, testseed.Rand(t), 10_000)
		if err := s.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		file := st.files(t)[0]
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := damage(file, info.Size()); err != nil {
			t.Fatal(err)
		}
		var bad *CorruptionError
		if _, err := load(t, st, s, mem, 64); !errors.As(err, &bad) || bad.File != file {
			t.Errorf("%s: %v", what, err)
		}
		other := filepath.Join(filepath.Dir(file), fmt.Sprintf("%016x-1-1%s", 8, Suffix)) // of another table
		if err := os.WriteFile(other, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := st.Remove(); err != nil {
			t.Fatal(err)
		}
		if left := st.files(t); !slices.Equal(left, []string{other}) {
			t.Errorf("%s: left over: %q", what, left)
		}
	}
}
