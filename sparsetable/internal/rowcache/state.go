package rowcache

import (
	"math/bits"
	"unsafe"
)

// meta is what the cache knows of one row. Four metas fit a cache line:
//
//	key    of a free row: the reference of the next free one
//	next   row of the same chain, 0 at its end
//	state  bits  0- 6  pins: passes that hold the row, 127 of them at most, see
//	                   Cache.mu.morePins
//	             7-12  Flags
//	            13-20  uses, a logarithmic counter (encodeUses)
//	            21-28  group of the next announced pass that needs it; 0: none
//	            29-31  epoch of the last use
//
// These 16 bytes hold everything that the directory and the policy know of a row, so that finding
// and pinning a row costs two misses of the processor's cache: one for the chain's head and one for
// the meta.
type meta struct {
	key   uint64
	next  uint32
	state uint32
}

const (
	metaBytes = 16

	pinBits  = 7
	pinMask  = 1<<pinBits - 1
	flagMask = uint32(63) << pinBits

	usesShift = 13
	usesMask  = uint32(255) << usesShift

	groupShift = 21
	groupMask  = uint32(255) << groupShift

	epochShift = 29
	epochCount = 8

	// maxPins is the largest number of pins that a state holds; Cache.mu.morePins counts the rest.
	maxPins = pinMask
)

var _ [metaBytes]byte = [unsafe.Sizeof(meta{})]byte{}

// Flags are marks of a row.
type Flags uint32

const (
	// Live rows are in use; all others are free.
	Live Flags = 1 << (pinBits + iota)
	// Dirty rows hold updates that are not on SSD. They are dropped only once they are clean.
	Dirty
	// Taken rows were handed out by Victims and wait for Drop.
	Taken
	// Old rows have not been inserted, gone from clean to dirty, or been declared saved since the
	// last BeginSave. A row's state does not hold this flag itself but a bit that is compared with
	// Cache.mu.parity, see save.go.
	Old
	// Mark2 is for the caller to define. Insert sets or clears it.
	Mark2
	// Saved rows are dirty but unchanged since the last save wrote them, according to the caller. A
	// row is no longer Saved when it becomes clean, or when it is released after a possible update.
	Saved
)

func pins(s uint32) uint32  { return s & pinMask }
func uses(s uint32) uint32  { return s & usesMask >> usesShift }
func group(s uint32) uint32 { return s & groupMask >> groupShift }
func epoch(s uint32) uint32 { return s >> epochShift }

func withUses(s, u uint32) uint32  { return s&^usesMask | u<<usesShift }
func withGroup(s, g uint32) uint32 { return s&^groupMask | g<<groupShift }
func withEpoch(s, e uint32) uint32 { return s&^(uint32(7)<<epochShift) | e<<epochShift }

// idle reports whether a row is a candidate of the policy: live, not pinned and not taken.
func idle(s uint32) bool {
	return s&(pinMask|uint32(Live)|uint32(Taken)) == uint32(Live)
}

// A counter of uses is exact up to 31. Beyond that it counts in steps of 1/16 octave, and takes
// each step with such a probability that its expected value is right (Morris 1978), up to half a
// million. So rows near the edge of the cache, which were used a few times each, are compared
// exactly, and hot rows can still be told apart after weeks.
const (
	exactUses = 32
	stepBits  = 4
	maxUses   = 255
)

// encodeUses is the counter for the largest representable number of uses up to n.
func encodeUses(n uint32) uint32 {
	if n < exactUses {
		return n
	}
	e := uint32(bits.Len32(n)) - 1 - stepBits // n >> e has five bits, the highest set
	return min(maxUses, exactUses+(e-1)<<stepBits+(n>>e)&(1<<stepBits-1))
}

// decodeUses is the smallest n that encodes to u.
func decodeUses(u uint32) uint32 {
	if u < exactUses {
		return u
	}
	u -= exactUses
	return (1<<stepBits + u&(1<<stepBits-1)) << (u>>stepBits + 1)
}

// countUse adds one use. random is any well-mixed number.
func countUse(u uint32, random uint64) uint32 {
	if u < exactUses {
		return u + 1
	}
	e := (u-exactUses)>>stepBits + 1
	if u == maxUses || random&(1<<e-1) != 0 {
		return u
	}
	return u + 1
}

// halveUses is the counter of half the uses.
func halveUses(u uint32) uint32 {
	if u >= exactUses+1<<stepBits {
		return u - 1<<stepBits
	}
	return decodeUses(u) / 2
}
