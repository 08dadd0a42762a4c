package rowtext

import (
	"bytes"
	"errors"
	"io"
	"strings"
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
		s, read := &Lines{}, int64(0)
		for start := int64(0); start < int64(len(data)); start += chunk {
			from, end := max(start-1, 0), min(start+chunk, int64(len(data)))
			counted := &countedReader{r: bytes.NewReader(data[from:])}
			s.Reset(counted, from, end, 64<<10)
			if start > 0 {
				if err := s.SkipLine(); err != nil {
					t.Fatal(err)
				}
			}
			for {
				if _, _, _, err := s.Next(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Offset(); got < end {
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

// zeros are zero bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestHugeLineTakesLittleMemory(t *testing.T) {
	s := &Lines{}
	s.Reset(io.MultiReader(io.LimitReader(zeros{}, 100<<20), strings.NewReader("\n1,1,a,b\n")), 0, 1<<62, 1<<20)
	if _, offset, tooLong, err := s.Next(); !tooLong || offset != 0 || err != nil {
		t.Errorf("%v %v", tooLong, err)
	}
	if line, offset, tooLong, err := s.Next(); string(line) != "1,1,a,b" || offset != 100<<20+1 || tooLong || err != nil {
		t.Errorf("%q at %d: %v", line, offset, err)
	}
	if len(s.buf) > 4<<20 {
		t.Errorf("a buffer of %d bytes", len(s.buf))
	}
}
