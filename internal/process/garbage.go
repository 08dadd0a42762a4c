package process

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"aibox/internal/panics"
)

const (
	// garbageInterval is how often the collector's limit is recomputed.
	garbageInterval = 250 * time.Millisecond
	// A share of 1/spareShare of the memory that the process could have stays free, but at most
	// mostSpareBytes: memory outside of Go's heap, and memory that the kernel holds for the
	// process, may grow between two checks.
	spareShare     = 16
	mostSpareBytes = 256 << 20
	// The limit is set only if it changes by more than 1/notableShare, because setting it stops all
	// goroutines.
	notableShare = 64
)

// LimitGarbage makes Go's garbage collector run more often, until ctx ends, if its garbage would
// otherwise not fit in the memory of the machine or of the control group, so that Linux would kill
// the process. The limit follows the free memory, because tables and other processes grow too. If
// it is below what is in use, the collector takes at most half of the CPU time. If GOMEMLIMIT is
// set, that limit stays.
func LimitGarbage(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	panics.Go("the limit for garbage", func() {
		limit := int64(math.MaxInt64)
		for tick := time.NewTicker(garbageInterval); ; {
			next := garbageLimit(goBytes(), MemoryOrZero().Now, FreeMemory())
			if change := next - limit; max(change, -change) > limit/notableShare {
				limit = next
				debug.SetMemoryLimit(limit)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
}

// garbageLimit returns how much memory Go's runtime may have, if it has has bytes of the resident
// set and free bytes are free (-1: unknown); math.MaxInt64 means no limit.
func garbageLimit(has, resident, free int64) int64 {
	if free < 0 {
		return math.MaxInt64
	}
	return max(0, has+free-spareBytes(resident, free))
}

// goBytes returns the memory that Go's runtime has from the system, which debug.SetMemoryLimit
// limits.
func goBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
