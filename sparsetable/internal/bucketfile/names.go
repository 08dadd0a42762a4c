package bucketfile

// HeaderBytes is the number of bytes that a file takes in addition to its buckets.
const HeaderBytes = fileHeaderBytes

// Writes end at a multiple of WriteAlign.
const WriteAlign = writeAlign

// FileName is the name of a table's file in its directory.
func FileName(table uint64, file uint32, incarnation uint64) string {
	return fileName(table, file, incarnation)
}

// Path returns the path of a file, or the beginning of its name if the Set does not have it.
func (s *Set) Path(file uint32) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.mu.files[file]; f != nil {
		return f.path()
	}
	return numberName(s.opts.Table, file)
}

// DirOf returns the number of the directory that has a file.
func (s *Set) DirOf(file uint32) (dir uint16, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.mu.files[file]; f != nil {
		return uint16(f.dir.index), true
	}
	return 0, false
}
