package bucketfile

// HeaderBytes is what a file takes beside its buckets.
const HeaderBytes = fileHeaderBytes

// WriteAlign is what writes end at a multiple of.
const WriteAlign = writeAlign

// FileName is the name of a table's file in its directory.
func FileName(table uint64, file uint32) string { return fileName(table, file) }

// Path returns where a file lies, its name alone if it is not there.
func (s *Set) Path(file uint32) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.mu.files[file]; f != nil {
		return f.path()
	}
	return fileName(s.opts.Table, file)
}
