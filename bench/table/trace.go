package main

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"aibox/internal/splitmix"
)

// trace has the unique keys of every mini-batch, as ranks: rank 0 is the most popular key.
// It lies outside the garbage collector's heap, so that it does not influence how often
// the collector runs for a store that makes garbage.
type trace struct {
	ranks   []uint32 // batch after batch, in the order of their first lookup
	ends    []int    // of batch b in ranks
	mapping []byte

	keys       []uint64 // of ranks, see announceable
	keyMapping []byte
}

// newTrace draws batches of lookups from Zipf's law: rank r has a probability
// in proportion to (1+r)^-s. Equal arguments give equal traces.
func newTrace(keys, batches, lookups int, s float64, seed int64) (*trace, error) {
	// Pages that are not touched cost nothing, so there is room for lookups that are all
	// different.
	mapping, err := unix.Mmap(-1, 0, 4*batches*min(lookups, keys), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("memory for a trace: %w", err)
	}
	room := unsafe.Slice((*uint32)(unsafe.Pointer(&mapping[0])), len(mapping)/4)
	t := &trace{ranks: room[:0], mapping: mapping}
	zipf := rand.NewZipf(rand.New(rand.NewSource(seed)), s, 1, uint64(keys-1))
	seen := newRankSet(lookups)
	for range batches {
		seen.clear()
		for range lookups {
			if r := uint32(zipf.Uint64()); seen.add(r) {
				t.ranks = append(t.ranks, r)
			}
		}
		t.ends = append(t.ends, len(t.ranks))
	}
	return t, nil
}

func (t *trace) close() error {
	t.ranks, t.keys = nil, nil
	err := unix.Munmap(t.mapping)
	if t.keyMapping != nil {
		err = errors.Join(err, unix.Munmap(t.keyMapping))
	}
	return err
}

// announceable makes the keys that keysOf returns. They are not counted as the store's
// memory, because in a job the waiting passes hold them.
func (t *trace) announceable() (err error) {
	t.keyMapping, err = unix.Mmap(-1, 0, 8*len(t.ranks), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("memory for the keys of a trace: %w", err)
	}
	t.keys = unsafe.Slice((*uint64)(unsafe.Pointer(&t.keyMapping[0])), len(t.ranks))
	for i, r := range t.ranks {
		t.keys[i] = keyOf(uint64(r))
	}
	return nil
}

// keysOf returns the keys of batch b. They do not change.
func (t *trace) keysOf(b int) []uint64 {
	from, to := t.span(b)
	return t.keys[from:to]
}

// span is where batch b lies in ranks and keys.
func (t *trace) span(b int) (from, to int) {
	if b > 0 {
		from = t.ends[b-1]
	}
	return from, t.ends[b]
}

func (t *trace) batches() int { return len(t.ends) }

// counts is the numbers of keys of the batches.
func (t *trace) counts() []int {
	counts := slices.Clone(t.ends)
	for b := len(counts) - 1; b > 0; b-- {
		counts[b] -= counts[b-1]
	}
	return counts
}

// batch returns the ranks of batch b.
func (t *trace) batch(b int) []uint32 {
	from, to := t.span(b)
	return t.ranks[from:to]
}

// appendKeys appends the keys of batch b to keys.
func (t *trace) appendKeys(keys []uint64, b int) []uint64 {
	for _, r := range t.batch(b) {
		keys = append(keys, keyOf(uint64(r)))
	}
	return keys
}

// keyOf maps ranks to keys one to one (by SplitMix64). Like hashes of
// features, keys are spread over all 64 bits, so that popular keys are not neighbours.
func keyOf(rank uint64) uint64 { return splitmix.Next(rank) }

// rankSet is a set that is emptied often: an entry is valid only if it has the number of
// the present round.
type rankSet struct {
	ranks, rounds []uint32
	round         uint32
	mask          uint32
}

func newRankSet(capacity int) *rankSet {
	n := 2
	for n < 2*capacity {
		n *= 2
	}
	return &rankSet{ranks: make([]uint32, n), rounds: make([]uint32, n), mask: uint32(n - 1)}
}

func (s *rankSet) clear() { s.round++ }

// add reports whether r is new.
func (s *rankSet) add(r uint32) bool {
	for i := uint32(keyOf(uint64(r))) & s.mask; ; i = (i + 1) & s.mask {
		if s.rounds[i] != s.round {
			s.rounds[i], s.ranks[i] = s.round, r
			return true
		}
		if s.ranks[i] == r {
			return false
		}
	}
}

// loadOrder visits all ranks once, in an order that does not depend on popularity: the
// keys that happen to be cached at the end of a load are no more popular than others.
func loadOrder(keys int) func(i int) uint64 {
	stride := uint64(float64(keys)*0.6180339887) | 1
	for gcd(stride, uint64(keys)) != 1 {
		stride += 2
	}
	return func(i int) uint64 { return uint64(i) * stride % uint64(keys) }
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
