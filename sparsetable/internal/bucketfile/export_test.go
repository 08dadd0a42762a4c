package bucketfile

// What tests alone need of a Set.

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
