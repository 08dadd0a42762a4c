package parquetfile

import "io"

// WithFooter is a file with a footer that the library can read: its statistics are hidden
// (HideStatistics). The library reads a footer with one call of ReadAt.
type WithFooter struct {
	io.ReaderAt
	Footer int64 // the offset where it begins
}

// ReadAt is io.ReaderAt's.
func (f WithFooter) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, offset)
	if offset == f.Footer {
		HideStatistics(p[:n])
	}
	return n, err
}
