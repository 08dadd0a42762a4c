package process

import "math"

// Room returns how much more memory a cache of arbitrary size should take; if negative, how much it
// should give back; math.MaxInt64 means no limit, because the system does not say how much is free.
// If memory is scarce, garbage may take half of what the cache leaves: see LimitGarbage.
func Room() int64 { return roomIn(MemoryOrZero().Now, FreeMemory()) }

// roomIn is Room for given resident and free memory.
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

// spareBytes is how much memory stays free.
func spareBytes(resident, free int64) int64 {
	return min((resident+free)/spareShare, mostSpareBytes)
}
