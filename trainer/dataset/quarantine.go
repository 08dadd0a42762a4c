package dataset

import (
	"fmt"
	"io"
	"os"
)

// Quarantine is the file of bad rows. They may contain personal data, so only the owner of the file
// may read it.
type Quarantine struct{ *os.File }

// OpenQuarantine opens the file at path, or creates it. flag has further flags of os.OpenFile.
func OpenQuarantine(path string, flag int) (*Quarantine, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|flag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("quarantine file: %w", err)
	}
	return &Quarantine{f}, nil
}

// Bytes returns the length of the file.
func (q *Quarantine) Bytes() (int64, error) {
	size, err := q.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fmt.Errorf("quarantine file: %w", err)
	}
	return size, nil
}

// Cut truncates the file to its first size bytes, and seeks to its end.
func (q *Quarantine) Cut(size int64) error {
	info, err := q.Stat()
	if err == nil && info.Size() > size {
		err = q.Truncate(size)
	}
	if err == nil {
		_, err = q.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return fmt.Errorf("quarantine file: %w", err)
	}
	return nil
}
