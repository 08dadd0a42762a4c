package bucketfile

// These functions give access to the internals of a Set; only tests need them.

// BufferedBytes returns the memory of append buffers in use.
func (s *Set) BufferedBytes() int64 {
	var n int64
	for _, d := range s.dirs {
		d.mu.Lock()
		n += int64(d.appends.buffers()) * int64(s.opts.BufferBytes)
		d.mu.Unlock()
	}
	return n
}
