package process

import "math"

// Room is how much more memory a cache should take that may have any size; negative: how much it
// should give back; math.MaxInt64: as much as it likes, since the system does not say what is free.
// Where memory is scarce, garbage may take half of what the cache leaves: see LimitGarbage.
func Room() int64 { return roomIn(MemoryOrZero().Now, FreeMemory()) }

// roomIn is Room where so much is resident, and so much is free.
func roomIn(resident, free int64) int64 {
	spare := spareBytes(resident, free)
	switch {
	case free < 0:
		return math.MaxInt64
	case free > 2*spare:
		return free - 2*spare
	case free < spare:
		return free - spare*3/2
	}
	return 0
}

// spareBytes is what stays free.
func spareBytes(resident, free int64) int64 {
	return min((resident+free)/spareShare, mostSpareBytes)
}
