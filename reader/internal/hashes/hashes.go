package hashes

import "github.com/cespare/xxhash/v2"

// Key returns the key of one sparse feature value: a 64-bit hash of the
// embedding space and the value's raw bytes, as they stand in the input without
// quoting. The same (space, value) has the same key in every format, on every
// machine and for ever: models depend on it, and golden values in the tests hold
// it fixed.
//
//	Key(space, value) = Mix(XXH64(value, 0) ^ Mix(XXH64(space, 0)))
//
// where Mix is a bijection of 64 bits (MurmurHash3's finalizer). So two values
// of one space collide exactly when their XXH64 hashes do, and each space permutes
// the hashes in its own way. All bits of a key are equally well mixed, and every key
// is possible, 0 included.
func Key(space string, value []byte) uint64 {
	return In(Space(space), value)
}

// Space is the seed of a space: the part of Key that depends on the space alone.
func Space(space string) uint64 { return Mix(xxhash.Sum64String(space)) }

// In is Key for a space whose seed is known.
func In(seed uint64, value []byte) uint64 { return Mix(xxhash.Sum64(value) ^ seed) }

// Mix is the 64-bit finalizer of MurmurHash3 (Appleby, public domain).
func Mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}

// The purposes of random numbers. Each use has one of its own, so that no two uses share a
// sequence.
const (
	Sampling uint64 = 0x73616d706c696e67 // "sampling"
	Shuffle  uint64 = 0x73687566666c6531 // "shuffle1"
	Split    uint64 = 0x73706c6974746572 // "splitter"; by convert
)

// Random returns 64 random bits for (seed, purpose, stream, index). There is no
// generator state: any example's number can be had without the others.
func Random(seed, purpose, stream, index uint64) uint64 {
	// The odd constant (2^64 over the golden ratio, as in SplitMix64) keeps
	// neighbouring indices far apart before mixing.
	const golden = 0x9e3779b97f4a7c15
	x := Mix(seed ^ purpose)
	x = Mix(x + golden*(stream+1))
	return Mix(x + golden*(index+1))
}

// Unit returns a number in [0, 1) with 53 random bits.
func Unit(seed, purpose, stream, index uint64) float64 {
	return float64(Random(seed, purpose, stream, index)>>11) * 0x1p-53
}
