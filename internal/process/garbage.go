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
	// garbageInterval is how often the limit of the collector is computed anew.
	garbageInterval = 250 * time.Millisecond
	// Of the memory that the process could have, a share of 1/spareShare stays free, but no more
	// than mostSpareBytes: what is not Go's grows between two looks, and so does what the kernel
	// holds for the process.
	spareShare     = 16
	mostSpareBytes = 256 << 20
	// notableShare of the limit, by 1, is how much it has to change before it is set: all
	// goroutines stop for that.
	notableShare = 64
)

// LimitGarbage makes Go's collector run more often where the garbage that it would let lie does not
// fit into the memory of the machine or of the control group, until ctx ends: Linux would kill the
// process. The limit follows what is free, since tables and other processes grow, too; where it is
// below what is in use, the collector takes half of the processors' time at most. Someone who sets
// GOMEMLIMIT has set the limit.
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

// garbageLimit is how much memory Go's runtime may have where it has so much of the resident set,
// and so much is free (-1: unknown); math.MaxInt64: as much as it likes.
func garbageLimit(has, resident, free int64) int64 {
	if free < 0 {
		return math.MaxInt64
	}
	return max(0, has+free-spareBytes(resident, free))
}

// goBytes is the memory that Go's runtime has of the system, which is what debug.SetMemoryLimit limits.
func goBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
