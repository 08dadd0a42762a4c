package reader

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// TestSmallRangesReadLittleMore counts what the scanners of a file's ranges read
// of it, when the file is one long line and when it is many short ones.
func TestSmallRangesReadLittleMore(t *testing.T) {
	const size, chunk = 8 << 20, 4 << 10
	for name, data := range map[string][]byte{
		"one line":   append(bytes.Repeat([]byte("x"), size), '\n'),
		"many lines": bytes.Repeat([]byte("1,2,3,4\n"), size/8),
	} {
		s, read := &lineScanner{}, int64(0)
		for start := int64(0); start < int64(len(data)); start += chunk {
			from, end := max(start-1, 0), min(start+chunk, int64(len(data)))
			counted := &countedReader{r: bytes.NewReader(data[from:])}
			s.reset(counted, from, end, 64<<10)
			if start > 0 {
				if err := s.skipLine(); err != nil {
					t.Fatal(err)
				}
			}
			for {
				if _, _, _, err := s.next(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if got := s.offset(); got < end {
				t.Fatalf("%s: the range of %d ended at %d", name, start, got)
			}
			read += counted.n
		}
		if most := int64(3 * len(data)); read > most {
			t.Errorf("%s: %d bytes were read of %d, at most %d may be", name, read, len(data), most)
		}
	}
}

// countedReader counts what is read.
type countedReader struct {
	r io.Reader
	n int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
