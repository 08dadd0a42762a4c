package catalog

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// A snapshot can be written as one stream of bytes, from which another catalog is made,
// on another machine. All integers are little-endian:
//
//	magic     8 bytes  "aiboxidx"
//	format    uint32 length, and the Format as JSON
//	record    uint32 length, and the snapshot's record (codec.go), without versions
//	pages     for each: uint32 length plus one, and the page
//	end       uint32   0
//	crc       uint32   CRC-32C of everything before
const (
	streamMagic = "aiboxidx"
	// maxStreamPart is far more than a page or a record has.
	maxStreamPart = 1 << 30
)

// Stream is a snapshot that is read from what Pin.Write wrote.
type Stream struct {
	Format   Format
	Snapshot Snapshot

	name string
	r    *bufio.Reader
	sum  hash.Hash32
	off  int64
}

// ReadSnapshot begins to read a stream, whose name is used in errors. They are
// *CorruptionError unless reading itself failed.
func ReadSnapshot(name string, from io.Reader) (*Stream, error) {
	s := &Stream{name: name, r: bufio.NewReaderSize(from, 1<<18), sum: crc32.New(castagnoli)}
	magic, err := s.take(len(streamMagic))
	if err != nil {
		return nil, err
	}
	if string(magic) != streamMagic {
		return nil, s.corrupt("it begins with %q", magic)
	}
	format, err := s.part(0)
	if err != nil {
		return nil, err
	}
	if s.Format, err = decodeFormat(format); err != nil {
		return nil, s.corrupt("the format: %v", err)
	}
	record, err := s.part(0)
	if err != nil {
		return nil, err
	}
	k, err := decodeSnapshot(record)
	if err != nil {
		return nil, s.corrupt("the record: %v", err)
	}
	s.Snapshot = k.Snapshot
	return s, nil
}

// Pages calls fn for every page, in ascending order. data is only valid during the call.
// Only when it returns nil are all of them known to be right.
func (s *Stream) Pages(fn func(page uint32, data []byte) error) error {
	for page := uint32(0); ; page++ {
		data, err := s.part(1)
		if err != nil {
			return err
		}
		if data == nil {
			break
		}
		if err := fn(page, data); err != nil {
			return err
		}
	}
	want := s.sum.Sum32()
	tail, err := s.take(4)
	if err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(tail); got != want {
		return s.corrupt("its checksum is %08x, computed %08x", got, want)
	}
	return nil
}

// part reads a length, from which extra is taken, and as many bytes; nil if the length
// was less than extra.
func (s *Stream) part(extra uint32) ([]byte, error) {
	word, err := s.take(4)
	if err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(word)
	if n < extra {
		return nil, nil
	}
	if n > maxStreamPart {
		return nil, s.corrupt("a part has %d bytes", n)
	}
	data, err := s.take(int(n - extra))
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}

// take reads n bytes, in steps, so that a damaged length does not ask for more memory than
// there are bytes.
func (s *Stream) take(n int) ([]byte, error) {
	var out []byte
	for len(out) < n {
		step := make([]byte, min(n-len(out), 1<<20))
		got, err := io.ReadFull(s.r, step)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			s.off += int64(got)
			return nil, s.corrupt("it ends early")
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.name, err)
		}
		s.off += int64(len(step))
		out = append(out, step...)
	}
	s.sum.Write(out)
	return out, nil
}

func (s *Stream) corrupt(format string, args ...any) error {
	return &CorruptionError{Dir: s.name, What: fmt.Sprintf("the bytes before %d", s.off), Err: fmt.Errorf(format, args...)}
}
