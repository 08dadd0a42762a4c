package memory

import (
	"fmt"
	"runtime/debug"

	"aibox/internal/humanize"
	"aibox/internal/process"
	"aibox/sparsetable/internal/contract"
)

const (
	// leastFreeBytes stay free for other parts of the process, which take memory before the table
	// asks again.
	leastFreeBytes = 8 << 20
	// Before it asks again, the table takes at most 1/askShare of the free memory, and at most
	// mostUnaskedBytes.
	askShare         = 4
	mostUnaskedBytes = 256 << 20
)

// room is the memory that the process can still have. Linux kills a process that takes more.
type room struct {
	free    func() int64 // process.FreeWithSwap, except in tests
	unasked int64        // bytes that may be taken before free is asked
}

// take reserves memory for the table, or returns ErrMemory.
func (r *room) take(bytes int64, what string) error {
	if bytes <= r.unasked {
		r.unasked -= bytes
		return nil
	}
	free := r.free()
	if free >= 0 && free < bytes+leastFreeBytes {
		debug.FreeOSMemory() // garbage
		free = r.free()
	}
	if free < 0 {
		r.unasked = mostUnaskedBytes
		return nil
	}
	if free < bytes+leastFreeBytes {
		return fmt.Errorf("%w: %s needs %s more, but only %s are free on this machine, or in its control group", contract.ErrMemory, what, humanize.Bytes(bytes), humanize.Bytes(max(0, free)))
	}
	r.unasked = min((free-bytes-leastFreeBytes)/askShare, mostUnaskedBytes)
	return nil
}

func newRoom() room { return room{free: process.FreeWithSwap} }
