package elevator

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
)

// planStretch finds the stops of the next stretch that has any. It returns false if there is none
// in the whole round. Such a round does not put the elevator ahead of its schedule, since stops of
// passes that are announced next may be anywhere on it.
func (e *Elevator) planStretch() bool {
	files := e.Files.LiveFiles()
	total, unit := roundBytes(files), int64(e.Files.Unit())
	// A stretch has at least one file, or a part of a round. Two stretches, at the ends of the
	// round, are shorter, and the step from the last file to the first counts, too.
	for left := min(len(files)+1, stretchesPerRound+3); left > 0; left-- {
		first := slices.IndexFunc(files, func(f bucketfile.Candidate) bool { return bucketfile.FileStart(f.File+1) > e.at })
		if first < 0 {
			e.at = 0
			continue
		}
		from, end := e.at, e.at
		for _, f := range files[first:] {
			end = bucketfile.FileStart(f.File + 1)
			if bytesBetween(files, from, end, unit) >= total/stretchesPerRound {
				break
			}
		}
		e.at = e.findStops(from, end)
		bytes := bytesBetween(files, from, e.at, unit)
		e.perStop = bytes / int64(max(1, len(e.stops)))
		if len(e.stops) > 0 {
			return true
		}
		e.due -= bytes
	}
	e.due = max(e.due, -maxLead*e.pace)
	return false
}

// roundBytes is the length of a round in bytes, which is the total size of the files.
func roundBytes(files []bucketfile.Candidate) (bytes int64) {
	for _, f := range files {
		bytes += f.Bytes
	}
	return bytes
}

// bytesBetween is the number of bytes of files between two locations.
func bytesBetween(files []bucketfile.Candidate, from, end bucketfile.Location, unit int64) (bytes int64) {
	for _, f := range files {
		upTo := func(l bucketfile.Location) int64 {
			switch {
			case l.File() < f.File:
				return 0
			case l.File() > f.File:
				return f.Bytes
			}
			return min(l.Offset()*unit, f.Bytes)
		}
		bytes += max(0, upTo(end)-upTo(from))
	}
	return bytes
}

// findStops sets the stops to the marked slots whose buckets lie at or after from, and before end.
// If there is no room for all, it shortens the stretch. It returns the end of the stretch.
func (e *Elevator) findStops(from, end bucketfile.Location) bucketfile.Location {
	e.stops, e.next = e.stops[:0], 0
	const chunk = 1 << 16 // takes some 100 microseconds, during which writers wait
	for first, n := uint32(0), uint32(1); first < n; first += chunk {
		e.IndexMu.RLock()
		n = e.Index.Slots()
		e.Index.Marked(first, first+chunk, max(1, uint64(from)), uint64(end), func(slot uint32, location uint64) {
			loc := bucketfile.Location(location)
			if loc >= end {
				return // end was moved nearer meanwhile
			}
			if len(e.stops) == cap(e.stops) {
				// There is no more room, so shorten the stretch.
				slices.SortFunc(e.stops, byPlace)
				half := len(e.stops) / 2
				end = e.stops[half].loc
				e.stops = e.stops[:half]
				if loc >= end {
					return
				}
			}
			e.stops = append(e.stops, stop{loc: loc, slot: slot})
		})
		e.IndexMu.RUnlock()
	}
	slices.SortFunc(e.stops, byPlace)
	return end
}

// submitStops starts reading the next stops whose buckets have not moved, and returns their number.
func (e *Elevator) submitStops() int {
	e.submit = e.submit[:0]
	e.IndexMu.RLock()
	defer e.IndexMu.RUnlock()
	unit := int64(e.Files.Unit())
	begin, bytes := e.stops[e.next].loc, int64(0) // bytes of the buckets only
	for e.next < len(e.stops) && len(e.submit) < submitBatch && bytes < e.limit/2 {
		s := e.stops[e.next]
		if !e.direct && s.loc.File() == begin.File() && (s.loc.Offset()-begin.Offset())*unit > e.limit/2 {
			break
		}
		first := e.next
		for e.next++; e.next < len(e.stops) && e.stops[e.next].slot == s.slot; e.next++ { // several keys of one slot
		}
		e.due -= e.perStop
		if !e.Index.LiesAt(s.slot, uint64(s.loc)) {
			e.readAgain(e.stops[first:e.next])
			continue
		}
		e.Index.Unmark(s.slot)
		if _, twice := e.inFlight[s.slot]; twice {
			e.readAgain(e.stops[first:e.next]) // the read in flight brings the rows that other passes lack
			continue
		}
		if size := int64(s.loc.Units()) * unit; size > e.limit || !e.direct && size > e.most {
			continue // the bucket is huge or the budget small: the Pull of the pass reads it
		}
		r := e.newStopRequest()
		*r = stopRequest{request: bucketfile.Request{Slot: s.slot, Location: s.loc, User: r}, keys: r.keys[:0], target: e.target}
		if e.target != nil {
			for _, s := range e.stops[first:e.next] {
				r.keys = append(r.keys, s.key)
			}
		}
		e.submit = append(e.submit, &r.request)
		e.inFlight[s.slot] = struct{}{}
		bytes += int64(s.loc.Units()) * unit
	}
	e.queue.Submit(e.submit) // under IndexMu, so that the location is not released before
	return len(e.submit)
}

// newStopRequest returns a recycled or new request.
func (e *Elevator) newStopRequest() *stopRequest {
	n := len(e.idle)
	if n == 0 {
		return new(stopRequest)
	}
	r := e.idle[n-1]
	e.idle = e.idle[:n-1]
	return r
}
