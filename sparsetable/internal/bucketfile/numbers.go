package bucketfile

// FileNumbers says how many of the numbers of files are used. None is used twice,
// so that a table which writes long enough comes to their end.
type FileNumbers struct {
	Used, All int64
}

// NearEnd reports whether three quarters of the numbers are used: the rest lasts a
// third of the time that these did.
func (n FileNumbers) NearEnd() bool { return 4*n.Used >= 3*n.All }

// FileNumbers returns how many numbers are used.
func (s *Set) FileNumbers() FileNumbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbersLocked()
}

// numbersLocked is FileNumbers. REQUIRES: s.mu is held.
func (s *Set) numbersLocked() FileNumbers {
	return FileNumbers{Used: int64(s.mu.nextFile) - 1, All: maxFile}
}
