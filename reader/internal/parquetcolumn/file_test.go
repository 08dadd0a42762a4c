package parquetcolumn

import (
	"errors"
	"io"
	"testing"
)

// halfDisk fails to read its second half.
type halfDisk struct{ size int64 }

func (d halfDisk) ReadAt(p []byte, offset int64) (int, error) {
	switch end := offset + int64(len(p)); {
	case end <= d.size/2:
		return len(p), nil
	case end > d.size:
		return int(max(d.size-offset, 0)), io.EOF
	}
	return 0, errDisk
}

func (halfDisk) Close() error { return nil }

var errDisk = errors.New("the disk is broken")

// TestFailedReadsAreNotDamage: what the library makes of errors does not matter.
func TestFailedReadsAreNotDamage(t *testing.T) {
	f := &File{at: &fileSource{ReaderAtCloser: halfDisk{100}, size: 100}}
	for _, c := range []struct {
		offset int64
		length int
		want   error
	}{{0, 50, nil}, {-5, 10, nil}, {101, 10, nil}, {95, 10, nil}, {60, 10, errDisk}, {0, 10, errDisk}} {
		if _, err := f.at.ReadAt(make([]byte, c.length), c.offset); f.Failure() != c.want {
			t.Errorf("after %d bytes from %d (%v) the failure is %v, want %v", c.length, c.offset, err, f.Failure(), c.want)
		}
	}
}
