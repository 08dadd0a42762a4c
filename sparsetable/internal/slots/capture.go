package slots

// Capture holds the pages that were dirty when it began, with the contents that they had then,
// until Next has taken each of them. Its methods count as changes of the index, so nothing else may
// use the index while they run.
type Capture struct {
	x      *Index
	slots  uint32 // when it began
	pages  bitmap // all pages of the capture
	live   bitmap // pages neither taken nor copied, because they have not changed
	left   int    // pages not yet taken
	cursor uint32 // all pages before this one have been taken

	copies map[uint32][]byte // pages that changed before they were taken
	spare  [][]byte          // buffers of copies that were taken
	bytes  int64             // of copies and spare
}

// BeginCapture begins a capture of the pages that are dirty now, and marks them clean. It only
// makes two copies of the marks, which take one bit a page. There is at most one capture at a time;
// Done or Abort ends it.
func (x *Index) BeginCapture() *Capture {
	if x.capture != nil {
		panic("slots: a capture is running already")
	}
	c := &Capture{
		x: x, slots: x.n, pages: x.dirty.clone(), live: x.dirty.clone(), left: x.dirty.count(),
		copies: map[uint32][]byte{},
	}
	x.dirty.clearAll()
	x.capture = c
	return c
}

// Capturing reports whether a capture is running.
func (x *Index) Capturing() bool { return x.capture != nil }

// Next takes the next page, in ascending order, and appends its encoding to dst. ok is false when
// all pages have been taken.
func (c *Capture) Next(dst []byte) (page uint32, data []byte, ok bool) {
	page, ok = c.pages.next(c.cursor)
	if !ok {
		return 0, dst, false
	}
	c.cursor = page + 1
	c.left--
	if b, copied := c.copies[page]; copied {
		delete(c.copies, page)
		c.spare = append(c.spare, b[:0])
		return page, append(dst, b...), true
	}
	c.live.clear(page)
	return page, c.x.encodePage(page, c.slots, dst), true
}

// Done ends the capture: its pages are durable.
func (c *Capture) Done() {
	c.end()
}

// Abort ends the capture: its pages are dirty again.
func (c *Capture) Abort() {
	c.x.dirty.or(c.pages)
	c.x.dirty.clearFrom(c.x.Pages()) // merges may have removed some of these pages
	c.end()
}

func (c *Capture) end() {
	if c.x.capture != c {
		panic("slots: the capture has ended already")
	}
	c.x.capture = nil
}

// touch must be called before a page changes. A running capture copies the page first
// if it has not taken it yet.
func (x *Index) touch(page uint32) {
	x.dirty.set(page)
	if x.capture != nil {
		x.capture.copy(page)
	}
}

func (c *Capture) copy(page uint32) {
	if !c.live.has(page) {
		return
	}
	c.live.clear(page)
	var b []byte
	if n := len(c.spare); n > 0 {
		b, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		b = make([]byte, 0, c.x.MaxPageBytes())
		c.bytes += int64(cap(b))
	}
	c.copies[page] = c.x.encodePage(page, c.slots, b)
}

// ChangedPages is the maximum number of pages that a split, a merge or a new bucket changes.
const ChangedPages = 4

// LeastCaptureBytes is the least number of bytes that a capture must be allowed so that the index
// can be changed at all before Next has taken a page. It includes the marks of pages that may be
// added before the capture begins.
func (x *Index) LeastCaptureBytes() int64 {
	const added = 4096 // pages
	return ChangedPages*int64(x.MaxPageBytes()) + 2*(int64(len(x.dirty))*8+bitmapBytes(added))
}

// CaptureFull reports whether a running capture could hold more than limit bytes after the next
// change. After Next has taken a few more pages, it no longer could.
func (x *Index) CaptureFull(limit int64) bool {
	c := x.capture
	if c == nil || c.left == 0 {
		return false
	}
	return int64(len(c.spare))+(limit-x.captureBytes())/int64(x.MaxPageBytes()) < ChangedPages
}

// captureBytes is the number of bytes that a running capture holds.
func (x *Index) captureBytes() int64 {
	if x.capture == nil {
		return 0
	}
	return x.capture.bytes + int64(cap(x.capture.pages)+cap(x.capture.live))*8
}
