package bucketfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
)

// A Request reads one bucket. The caller sets Slot, Location and User and submits it. When Wait has
// returned it, Bucket or Err is set, and Bucket is valid until Finish. After that the Request may
// be reused.
type Request struct {
	Slot     uint32
	Location Location
	User     any // the caller's

	Bucket Bucket
	Err    error

	file  *file
	group *group
	next  *Request // in group
}

// group is one device read, for one request or several neighbouring ones.
type group struct {
	read  blockio.Read
	file  *file
	buf   []byte
	first *Request
	left  int // requests that are not finished
	next  *group
}

// A Queue reads buckets for one goroutine. The number of its requests is not bounded; each takes a
// buffer of its bucket's size from a pool until it is finished. If the pool is at its limit, reads
// wait until other reads of the queue have ended. If the queue has no read in flight, one read may
// exceed the limit, because goroutines that wait for this one may hold the pool's buffers.
type Queue struct {
	set  *Set
	pool *blockio.Pool
	done blockio.Completions

	ready   []*Request // finished without a read, not yet returned
	free    *group
	order   []place
	reads   [][]*blockio.Read // by directory
	stalled []*blockio.Read   // reads that wait for a buffer
	ended   []*blockio.Read
	damaged []*Request // ended, to be fetched again
	pending int        // requests submitted and not returned by Wait
	merge   int64      // largest gap in bytes between buckets that are read together
	most    int64      // maximum length of a merged read
	held    int64

	deviceReads, deviceBytes uint64
}

// place sorts requests.
type place struct {
	loc Location
	at  int32
}

// NewQueue returns an empty queue.
func (s *Set) NewQueue() *Queue { return s.NewQueueIn(s.pool) }

// NewQueueIn returns an empty queue that takes its buffers from pool instead of the Set's pool. The
// pool's unit must be a multiple of the devices' units.
func (s *Set) NewQueueIn(pool *blockio.Pool) *Queue {
	return &Queue{set: s, pool: pool, merge: s.opts.MergeBytes, most: maxMergedBytes, reads: make([][]*blockio.Read, len(s.dirs))}
}

// MergeWithin replaces Options.MergeBytes in this queue by gapBytes, and bounds the
// length of a merged read by readBytes.
func (q *Queue) MergeWithin(gapBytes, readBytes int64) {
	q.merge, q.most = gapBytes, min(readBytes, maxMergedBytes)
}

// HeldBytes returns the size of the buffers that Finish has not yet given back.
func (q *Queue) HeldBytes() int64 { return q.held }

// Pending returns the number of requests that Wait has not returned yet.
func (q *Queue) Pending() int { return q.pending }

// DeviceReads returns how many reads the queue has submitted to devices, and
// their bytes.
func (q *Queue) DeviceReads() (reads, bytes uint64) { return q.deviceReads, q.deviceBytes }

// Submit starts requests without waiting. It merges reads of buckets that lie close together.
// Location 0 must not be requested.
func (q *Queue) Submit(reqs []*Request) {
	q.pending += len(reqs)
	q.order = q.order[:0]
	for i, r := range reqs {
		r.Bucket, r.Err, r.next, r.group = Bucket{}, nil, nil, nil
		q.order = append(q.order, place{r.Location, int32(i)})
	}
	if q.merge > 0 {
		slices.SortFunc(q.order, func(a, b place) int { return cmp.Compare(a.loc, b.loc) })
	}
	q.pinFiles(reqs)
	var last *group // the group planned last
	for _, p := range q.order {
		r := reqs[p.at]
		if r.Err != nil {
			q.ready = append(q.ready, r)
			continue
		}
		if g := q.plan(r, last); g != nil {
			q.reads[g.file.dir.index] = append(q.reads[g.file.dir.index], &g.read)
			last = g
		}
	}
	for i, reads := range q.reads {
		n := 0
		for _, r := range reads {
			if len(q.stalled) > 0 || !q.start(r, n == 0) {
				q.stalled = append(q.stalled, r)
				continue
			}
			reads[n] = r
			n++
		}
		q.set.dirs[i].dev.Submit(&q.done, reads[:n])
		clear(reads)
		q.reads[i] = reads[:0]
	}
}

// restart starts stalled reads as far as there are buffers now.
func (q *Queue) restart() {
	n := 0
	for n < len(q.stalled) && q.start(q.stalled[n], true) {
		r := q.stalled[n : n+1]
		r[0].User.(*group).file.dir.dev.Submit(&q.done, r)
		n++
	}
	q.stalled = append(q.stalled[:0], q.stalled[n:]...)
}

// pinFiles looks up the requests' files and pins each file once per request.
func (q *Queue) pinFiles(reqs []*Request) {
	s := q.set
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range q.order {
		r := reqs[p.at]
		if s.mu.closed {
			r.Err = ErrClosed
			continue
		}
		if r.file, r.Err = s.findLocked(r.Location); r.Err != nil {
			var corrupt *CorruptionError
			if errors.As(r.Err, &corrupt) {
				corrupt.Bucket, corrupt.Slot = true, r.Slot
			}
			continue
		}
		r.file.pins++
	}
}

// plan plans a read for r, unless r is served from an append buffer or by last, the read that was
// planned before it.
func (q *Queue) plan(r *Request, last *group) *group {
	unit := int64(q.set.unit)
	from := r.Location.Offset() * unit
	to := from + int64(r.Location.Units())*unit
	if to > r.file.written.Load() && q.fromBuffer(r, from, to) {
		return nil
	}
	align := int64(r.file.dir.dev.Unit()) // whole blocks of this size were written
	if last != nil && last.file == r.file && from >= last.read.Offset {
		end := last.read.Offset + int64(last.read.Cookie)
		to := roundUp(to, align)
		if from-end <= q.merge && to-last.read.Offset <= q.most {
			last.read.Cookie = uint64(max(end, to) - last.read.Offset)
			r.next, last.first = last.first, r
			r.group = last
			last.left++
			return nil
		}
	}
	from, to = from&^(align-1), roundUp(to, align)
	g := q.newGroup(r)
	g.read = blockio.Read{File: r.file.handle, Offset: from, Cookie: uint64(to - from), User: g}
	return g
}

// maxMergedBytes bounds the length of a merged read: beyond it, one read is not cheaper than two.
const maxMergedBytes = 128 << 10

// newGroup takes a group from the free list and puts only r into it.
func (q *Queue) newGroup(r *Request) *group {
	g := q.free
	if g == nil {
		g = new(group)
	} else {
		q.free = g.next
	}
	*g = group{file: r.file, first: r, left: 1}
	r.group = g
	return g
}

// start gives a planned read its buffer, and reports whether the read can be submitted. It cannot
// if the pool is at its limit, unless it is the first one to be submitted while no other read is in
// flight. If there is no memory at all, the read is submitted with an empty buffer; since that is
// not aligned, the read ends with an error at once, and Wait returns the cause.
func (q *Queue) start(r *blockio.Read, first bool) bool {
	g := r.User.(*group)
	n := int(r.Cookie)
	buf, err := q.pool.Get(n)
	if errors.Is(err, blockio.ErrPoolLimit) {
		if !first || q.done.Pending() > 0 {
			return false
		}
		buf, err = q.pool.GetBeyond(n)
	}
	if err != nil {
		for req := g.first; req != nil; req = req.next {
			req.Err = fmt.Errorf("bucketfile: read location %v of slot %d: %w", req.Location, req.Slot, err)
		}
		return true
	}
	g.buf, r.Buf = buf, buf
	q.held += int64(n)
	q.deviceReads++
	q.deviceBytes += uint64(n)
	return true
}

// fromBuffer serves r from the append buffer that has its bucket. It returns false if the bucket
// was written to the device meanwhile.
func (q *Queue) fromBuffer(r *Request, from, to int64) bool {
	d := r.file.dir
	buf, err := q.pool.GetBeyond(int(to - from))
	if err == nil {
		d.mu.Lock()
		found := d.copyBufferedLocked(r.file, from, buf)
		d.mu.Unlock()
		if !found {
			q.pool.Put(buf)
			if to > r.file.written.Load() {
				panic(fmt.Sprintf("bucketfile: location %v is neither written nor in a buffer", r.Location))
			}
			return false
		}
		q.newGroup(r).buf = buf
		q.held += int64(len(buf))
		r.decode(buf)
	} else {
		r.Err = fmt.Errorf("bucketfile: read location %v of slot %d: %w", r.Location, r.Slot, err)
	}
	q.set.unpin(r.file)
	q.ready = append(q.ready, r)
	return true
}

// copyBufferedLocked copies bytes of a file from the append buffer that has them, if any. REQUIRES:
// d.mu is held.
func (d *directory) copyBufferedLocked(f *file, from int64, dst []byte) bool {
	has := func(b *appendBuffer) bool {
		if b == nil || b.file != f || from < b.base || from+int64(len(dst)) > b.base+int64(b.used) {
			return false
		}
		copy(dst, b.mem[from-b.base:])
		return true
	}
	return has(d.appends.filled) || slices.ContainsFunc(d.appends.queue, has)
}

// decode sets Bucket from the bytes at the request's location.
func (r *Request) decode(buf []byte) {
	f := r.file
	offset := r.Location.Offset()
	b, n, reason := decodeBucket(buf, f.seed(offset), f.set.opts.RowWords, f.set.opts.Format)
	switch {
	case reason != "":
	case b.Slot != r.Slot:
		reason = fmt.Sprintf("bucket of slot %d", b.Slot)
	case unitsOf(n, f.set.unit) != r.Location.Units():
		reason = fmt.Sprintf("bucket of %d bytes in %d units", n, r.Location.Units())
	default:
		r.Bucket = b
		return
	}
	r.Err = f.corruptBucket(offset*int64(f.set.unit), r.Slot, reason)
}

// Wait appends finished requests to dst, in any order. It waits until at least atLeast requests are
// finished (at least one, and all of them if fewer are pending), and may append more. If nothing is
// pending, it returns dst at once. It verifies the checksums in the caller's goroutine.
func (q *Queue) Wait(dst []*Request, atLeast int) []*Request {
	from := len(dst)
	atLeast = min(max(atLeast, 1), q.pending)
	dst = append(dst, q.ready...)
	clear(q.ready)
	q.ready = q.ready[:0]
	for len(dst)-from < atLeast {
		q.restart()
		q.ended = q.done.Wait(q.ended[:0], q.readsFor(atLeast-(len(dst)-from), q.pending-(len(dst)-from)))
		q.readApart()
		for _, read := range q.ended {
			g := read.User.(*group)
			for r := g.first; r != nil; r = r.next {
				if r.arrived(read, read.Err, read.Done()); r.Err == nil {
					if r.decode(r.within(g)); r.Err != nil && blockio.IsArriving(g.file.handle) {
						q.damaged = append(q.damaged, r)
					}
				}
				dst = append(dst, r)
			}
		}
		q.refetch()
		q.unpinEnded()
	}
	q.pending -= len(dst) - from
	return dst
}

// within returns the bucket's part of the bytes that its group has read.
func (r *Request) within(g *group) []byte {
	at := r.Location.Offset()*int64(r.file.set.unit) - g.read.Offset
	return g.buf[at:][:r.Location.Units()*r.file.set.unit]
}

// arrived sets r.Err if a read that ended with err after done bytes did not bring the bucket.
func (r *Request) arrived(read *blockio.Read, err error, done int) {
	unit := int64(r.file.set.unit)
	from := r.Location.Offset() * unit
	switch {
	case r.Err != nil: // there was no buffer
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		if int64(done) < from+int64(r.Location.Units())*unit-read.Offset { // a restored file may end within the read's last block
			r.Err = r.file.corruptBucket(from, r.Slot, fmt.Sprintf("the file ends within %d bytes at %d", len(read.Buf), read.Offset))
		}
	case err != nil:
		r.Err = fmt.Errorf("bucketfile: slot %d: %w", r.Slot, err)
	}
}

// readApart reads the buckets of failed merged reads one by one: there may be a bad sector in one
// of them, or between them.
func (q *Queue) readApart() {
	var all sync.WaitGroup
	for _, read := range q.ended {
		g := read.User.(*group)
		if read.Err == nil || errors.Is(read.Err, io.ErrUnexpectedEOF) || g.first.next == nil || g.buf == nil {
			continue
		}
		all.Go(func() {
			defer panics.Exit("reading buckets one by one")
			for r := g.first; r != nil; r = r.next {
				r.readAlone(g)
			}
			read.Err = nil
		})
	}
	all.Wait()
}

// readAlone reads only the bucket, into its part of the buffer.
func (r *Request) readAlone(g *group) {
	unit := int64(r.file.set.unit)
	align := int64(r.file.dir.dev.Unit())
	from := r.Location.Offset() * unit &^ (align - 1)
	to := roundUp((r.Location.Offset()+int64(r.Location.Units()))*unit, align)
	n, err := r.file.handle.ReadAt(g.buf[from-g.read.Offset:to-g.read.Offset], from)
	r.arrived(&g.read, err, int(from-g.read.Offset)+n)
}

// maxRefetches bounds how often a damaged bucket of a file that is still arriving is fetched and
// read again.
const maxRefetches = 2

// refetch fetches damaged buckets of files that are still arriving again, all at once: they may not
// have arrived yet, or were damaged in transit.
func (q *Queue) refetch() {
	var group sync.WaitGroup
	for _, r := range q.damaged {
		group.Go(func() {
			defer panics.Exit("bringing a damaged bucket again")
			r.refetch(r.within(r.group), r.Location.Offset()*int64(q.set.unit))
		})
	}
	group.Wait()
	q.damaged = q.damaged[:0]
}

// refetch fetches a damaged bucket again, into its buffer.
func (r *Request) refetch(bucket []byte, from int64) {
	for range maxRefetches {
		if r.Err == nil {
			return
		}
		again, err := blockio.Refetch(r.file.handle, bucket, from)
		if err != nil {
			r.Err = fmt.Errorf("bucketfile: slot %d: %w", r.Slot, err) // it is unknown whether it is damaged
		}
		if err != nil || !again {
			return
		}
		r.Err = nil
		r.decode(bucket)
	}
}

// readsFor estimates how many reads contain n of the pending requests. The device works on the
// other reads while the caller processes these.
func (q *Queue) readsFor(n, pending int) int {
	return max(1, n*q.done.Pending()/max(pending, 1))
}

// unpinEnded unpins the files of the ended requests.
func (q *Queue) unpinEnded() {
	q.set.mu.Lock()
	defer q.set.mu.Unlock()
	for _, read := range q.ended {
		g := read.User.(*group)
		for r := g.first; r != nil; r = r.next {
			q.set.unpinLocked(g.file)
		}
	}
	clear(q.ended)
}

// Finish gives back the buffers of requests that Wait returned. Their Buckets must not
// be used any more.
func (q *Queue) Finish(reqs []*Request) {
	for _, r := range reqs {
		g := r.group
		r.Bucket, r.group, r.file, r.next = Bucket{}, nil, nil, nil
		if g == nil {
			continue
		}
		if g.left--; g.left > 0 {
			continue
		}
		if g.buf != nil {
			q.held -= int64(len(g.buf))
			q.pool.Put(g.buf)
		}
		*g = group{next: q.free}
		q.free = g
	}
}

// Read reads one bucket and calls fn with it. It is meant for tools; use a Queue for
// many reads.
func (s *Set) Read(slot uint32, loc Location, fn func(*Bucket) error) error {
	q := s.NewQueue()
	r := &Request{Slot: slot, Location: loc}
	q.Submit([]*Request{r})
	done := q.Wait(nil, 1)
	defer q.Finish(done)
	if r.Err != nil {
		return r.Err
	}
	return fn(&r.Bucket)
}
