package space

import (
	"fmt"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/plan"
)

// Policy decides about the space of a table.
type Policy struct {
	Files            *bucketfile.Set
	Devices          []blockio.Device
	MaxAmplification float64 // the limit of SSDOptions.MaxSpaceAmplification
	BufferBytes      int     // of an append buffer
	MinFileBytes     int64   // of a bucket file
}

// maxLiveShare is the maximum live part of a file that is emptied to make room in a nearly full
// directory. Emptying such a file frees a tenth of it, and writes nine times as many bytes.
const maxLiveShare = 0.9

// fullShare is the live part above which emptying a file is not worthwhile: then the dead bytes are
// in files that cannot be emptied.
const fullShare = 0.97

// A directory counts as nearly full when its remaining space is less than FullFiles times what
// emptying a file takes: that room itself, and as much again for what a step writes, for the moved
// buckets of a file, and for emptied files that reads in flight still hold.
const FullFiles = 2

// ReservedBytes is the space kept free in each directory's file system. Only appends that make room
// may use it.
const ReservedBytes = 64 << 20

// Worst returns the next file to be emptied, if one has to be because all files together take more
// than target, or because a directory is nearly full. It is the file with the smallest live part.
// Files that snapshots hold come after those whose emptying makes room at once. step is the number
// of bytes of buckets that a step of writing has.
func (p *Policy) Worst(step int64) (worst bucketfile.Candidate, ok bool) {
	all, each := p.Files.Space()
	crowded := all.TotalBytes-all.DyingBytes-all.KeptBytes > p.target(all.LiveBytes, step)
	full, anyFull := make([]bool, len(each)), false
	for i, sp := range each {
		full[i] = p.nearlyFull(i, sp)
		anyFull = anyFull || full[i]
	}
	if !crowded && !anyFull {
		return bucketfile.Candidate{}, false
	}
	// The best of each kind. Nothing is sorted, because this runs for every buffer that is written.
	var free, held, room firstFile // room: makes room in a full directory
	p.Files.EachCandidate(func(c bucketfile.Candidate) {
		if c.LiveBytes == 0 {
			return
		}
		if full[c.Directory] && c.Holders == 0 && float64(c.LiveBytes) <= maxLiveShare*float64(c.Bytes) {
			room.offer(c)
		}
		switch {
		case float64(c.LiveBytes) > fullShare*float64(c.Bytes):
		case c.Holders == 0:
			free.offer(c)
		default:
			held.offer(c)
		}
	})
	if crowded {
		worth := free.found && float64(free.LiveBytes)*p.MaxAmplification <= float64(free.Bytes)
		if held.found && !worth {
			return held.Candidate, true
		}
		if free.found {
			return free.Candidate, true
		}
	}
	return room.Candidate, room.found
}

// firstFile is the first of some files in the order of emptying.
type firstFile struct {
	bucketfile.Candidate
	found bool
}

func (f *firstFile) offer(c bucketfile.Candidate) {
	if !f.found || c.Compare(f.Candidate) < 0 {
		f.Candidate, f.found = c, true
	}
}

// target is how many bytes files may take before one is emptied, if live of them are live. It is
// lower than the limit by what may be written before the next check, so that the limit holds at any
// time. That is
//
//   - two steps of each of two concurrent writers: one for what they split and what makes room for
//     more slots, and one for evicted rows;
//   - the live part of a file while it is being emptied: files have a sixteenth of what is live,
//     and those that are emptied are emptier than most;
//   - buffers, and the file that is being appended to, which cannot be emptied.
//
// A small table does not have that many bytes to spare. So at most half of the bytes that may be
// dead are kept free, and of the bytes that are always allowed, only those that compaction could
// free.
func (p *Policy) target(live, step int64) int64 {
	steps := 4 * step
	limit := p.MaxAmplification
	slack := p.Slack() * int64(len(p.Devices))
	keep := float64(slack + steps + live/32)
	keep = min(keep, (limit-1)/2*float64(live))
	return max(int64(limit*float64(live)-keep), live+slack)
}

// nearlyFull reports whether a directory's budget or file system has only as much left as the
// appends that make room need.
func (p *Policy) nearlyFull(directory int, sp bucketfile.Space) bool {
	keep := FullFiles * p.Files.EmptyingBytes(directory)
	if sp.BudgetBytes > 0 && sp.TotalBytes+sp.OtherBytes-sp.DyingBytes > sp.BudgetBytes-keep {
		return true
	}
	free, err := p.Devices[directory].Free()
	// If the free space is unknown, appends find out, because they check it, too.
	return err == nil && free+sp.DyingBytes < ReservedBytes+keep
}

// Slack is what compaction cannot free in a directory: a few buffers, and the file that is being
// appended to.
func (p *Policy) Slack() int64 {
	return 4*plan.AppendBuffers*int64(p.BufferBytes) + p.MinFileBytes
}

// AlwaysAllowed is how many dead bytes are allowed whatever the limit: what compaction cannot free,
// and as much again for what target keeps free in a larger table. Per directory these are 24
// buffers and two of the smallest files.
func (p *Policy) AlwaysAllowed() int64 { return 2 * p.Slack() * int64(len(p.Devices)) }

// RoomIn is how many more bytes may be written to a directory whose present space is sp.
func (p *Policy) RoomIn(directory int, sp bucketfile.Space) (int64, error) {
	d := p.Devices[directory]
	free, err := d.Free()
	if err != nil {
		return 0, fmt.Errorf("sparsetable: free space of %s: %w", d.Dir(), err)
	}
	free -= ReservedBytes
	if sp.BudgetBytes > 0 {
		free = min(free, sp.BudgetBytes-sp.TotalBytes-sp.OtherBytes-p.Files.UrgentBytes())
	}
	return max(0, free), nil
}
