package rowtext

import (
	"bytes"
	"io"
)

// Lines cuts a byte stream into lines in a bounded buffer. A line ends
// with \n, \r\n or the end of the stream. A line of more than maxLine bytes
// (without its end) is reported once, with its beginning, and the rest of it is
// skipped without being held. The zero Lines is ready for Reset.
type Lines struct {
	r       io.Reader
	maxLine int
	limit   int64 // lines that start at this offset or later are not returned

	buf    []byte
	lo, hi int   // unread bytes are buf[lo:hi]
	base   int64 // offset in the stream of buf[0]
	eof    bool
	open   bool
}

// readBytes is how much Lines ask of their reader at a time: large enough
// to make system calls cheap, small enough to stay in the cache until parsed.
const readBytes = 256 << 10

// tailBytes is how much Lines asks for beyond its limit, where it only needs the end of one line:
// most logs have a few lines in it. For a longer line the amount is doubled, so that at most as
// many bytes are read in vain as the line has.
const tailBytes = 4 << 10

// NewLines returns Lines with the given initial buffer size, for a stream of which little is read.
func NewLines(buffer int) *Lines { return &Lines{buf: make([]byte, buffer)} }

// Reset starts over at offset of the stream r, keeping the buffer.
func (s *Lines) Reset(r io.Reader, offset, limit int64, maxLine int) {
	*s = Lines{r: r, maxLine: maxLine, limit: limit, buf: s.buf, base: offset}
	if s.buf == nil {
		s.buf = make([]byte, readBytes)
	}
}

// ResetBytes starts over at offset of a stream whose rest is data, which is not
// copied.
func (s *Lines) ResetBytes(data []byte, offset int64, maxLine int) {
	*s = Lines{maxLine: maxLine, limit: 1<<63 - 1, buf: data, hi: len(data), base: offset, eof: true}
}

// Offset is that of the next unread byte.
func (s *Lines) Offset() int64 { return s.base + int64(s.lo) }

// Open says whether the last line that Next returned has no line end, because the stream ended.
func (s *Lines) Open() bool { return s.open }

// Ended says whether nothing of the stream is left.
func (s *Lines) Ended() bool { return s.eof && s.lo == s.hi }

// Next returns the next line without its end, and its offset. The line is valid
// until the next call. It returns io.EOF after the last line that starts before
// the limit.
func (s *Lines) Next() (line []byte, offset int64, tooLong bool, err error) {
	if s.Offset() >= s.limit {
		return nil, s.Offset(), false, io.EOF
	}
	searched := 0
	for {
		if i := bytes.IndexByte(s.buf[s.lo+searched:s.hi], '\n'); i >= 0 {
			offset = s.Offset()
			line = trimCR(s.buf[s.lo : s.lo+searched+i])
			s.lo += searched + i + 1
			return line, offset, len(line) > s.maxLine, nil
		}
		searched = s.hi - s.lo
		if s.eof {
			offset = s.Offset()
			if searched == 0 {
				return nil, offset, false, io.EOF
			}
			line = trimCR(s.buf[s.lo:s.hi])
			s.lo, s.open = s.hi, true
			return line, offset, len(line) > s.maxLine, nil
		}
		if searched > s.maxLine+1 { // the line is too long even if its last byte is a \r
			offset = s.Offset()
			line = bytes.Clone(s.buf[s.lo : s.lo+min(searched, prefixBytes)])
			return line, offset, true, s.SkipLine()
		}
		if err := s.fill(); err != nil {
			return nil, s.Offset(), false, err
		}
	}
}

// SkipLine moves past the next \n, or to the limit if that comes first.
func (s *Lines) SkipLine() error {
	for s.Offset() < s.limit {
		if i := bytes.IndexByte(s.buf[s.lo:s.hi], '\n'); i >= 0 {
			s.lo += i + 1
			return nil
		}
		s.lo = s.hi
		if s.eof {
			return nil
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads more bytes into the buffer, after the unread ones.
func (s *Lines) fill() error {
	if s.lo > 0 {
		copy(s.buf, s.buf[s.lo:s.hi])
		s.base += int64(s.lo)
		s.lo, s.hi = 0, s.hi-s.lo
	}
	if s.hi == len(s.buf) {
		grown := make([]byte, 2*len(s.buf))
		copy(grown, s.buf)
		s.buf = grown
	}
	// Bytes after the limit are read again by the worker of the next range. With
	// reads of readBytes, small ranges, and ranges within a long line, would read
	// many times their own length.
	room := len(s.buf) - s.hi
	if left := s.limit - s.base - int64(s.hi); left > 0 {
		room = int(min(int64(room), left))
	} else {
		room = min(room, max(tailBytes, s.hi-s.lo))
	}
	for range 100 { // as in bufio: a reader that returns no bytes so often is broken
		n, err := s.r.Read(s.buf[s.hi : s.hi+room])
		s.hi += n
		if err == io.EOF {
			s.eof = true
			return nil
		}
		if err != nil {
			return err
		}
		if n > 0 {
			return nil
		}
	}
	return io.ErrNoProgress
}

// trimCR cuts one \r off the end.
func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// TrimBOM cuts a UTF-8 byte order mark off the beginning of a file.
func TrimBOM(line []byte) []byte { return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) }
