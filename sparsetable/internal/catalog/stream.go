package catalog

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// A snapshot can be written as a stream of bytes, from which another catalog is made, for example
// on another machine. A stream has all pages of the index, or only those that changed after an
// earlier snapshot, whose streams are then needed as well. All integers are little-endian:
//
//	magic     8 bytes  "aiboxid2"
//	format    uint32 length, and the Format as JSON
//	record    uint32 length, and the snapshot's record (codec.go), without versions
//	since     uint64   the earlier snapshot; 0 if the stream has all pages
//	pages     for each: uint32 length plus one, uint32 number, and the page
//	end       uint32   0
//	crc       uint32   CRC-32C of everything before
//
// Earlier versions wrote the magic "aiboxidx". Such a stream has all pages, but neither since nor
// page numbers.
const (
	streamMagic    = "aiboxid2"
	streamMagicOld = "aiboxidx"
	// maxStreamPart is far more than the size of a page or a record.
	maxStreamPart = 1 << 30
)

// streamWriter writes a stream.
type streamWriter struct {
	to  io.Writer
	w   *bufio.Writer // writes to to and sum
	sum hash.Hash32
}

func newStreamWriter(to io.Writer, f Format, record Snapshot, since uint64) (*streamWriter, error) {
	format, err := f.encode()
	if err != nil {
		return nil, err
	}
	s := &streamWriter{to: to, sum: crc32.New(castagnoli)}
	s.w = bufio.NewWriterSize(io.MultiWriter(to, s.sum), 1<<18)
	_, _ = s.w.WriteString(streamMagic) // the last Write returns the error of an earlier one
	for _, part := range [][]byte{format, encodeSnapshot(&kept{Snapshot: record})} {
		s.word(len(part))
		_, _ = s.w.Write(part)
	}
	_, err = s.w.Write(binary.LittleEndian.AppendUint64(nil, since))
	return s, err
}

func (s *streamWriter) word(n int) {
	_, _ = s.w.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
}

func (s *streamWriter) page(number uint32, data []byte) error {
	s.word(len(data) + 1)
	s.word(int(number))
	_, err := s.w.Write(data)
	return err
}

func (s *streamWriter) end() error {
	s.word(0)
	if err := s.w.Flush(); err != nil {
		return err
	}
	_, err := s.to.Write(binary.LittleEndian.AppendUint32(nil, s.sum.Sum32()))
	return err
}

// Stream is a snapshot that is read from the output of Pin.Write.
type Stream struct {
	Format   Format
	Snapshot Snapshot

	since    uint64
	numbered bool    // pages are preceded by their numbers
	older    *Stream // the stream that has the pages missing here; nil: none are missing
	ahead    streamPage
	name     string
	r        *bufio.Reader
	sum      hash.Hash32
	off      int64
}

// streamPage is the next page of a stream.
type streamPage struct {
	page uint32
	data []byte // nil: there is no next page
}

// ReadNewer begins to read a snapshot from a stream. If the stream has only the pages that changed
// after an older snapshot, older is the stream of that snapshot, from which nothing has been read
// yet; the two are read together. older is nil if the stream has all pages. name is used in errors.
// Errors are *CorruptionError unless reading itself failed.
func ReadNewer(older *Stream, name string, from io.Reader) (*Stream, error) {
	s := &Stream{older: older, name: name, r: bufio.NewReaderSize(from, 1<<18), sum: crc32.New(castagnoli)}
	magic, err := s.take(len(streamMagic))
	if err != nil {
		return nil, err
	}
	if s.numbered = string(magic) == streamMagic; !s.numbered && string(magic) != streamMagicOld {
		return nil, s.corrupt("it begins with %q", magic)
	}
	format, err := s.part()
	if err != nil {
		return nil, err
	}
	if s.Format, err = decodeFormat(format); err == nil {
		err = s.Format.validate()
	}
	if err != nil {
		return nil, s.corrupt("the format: %v", err)
	}
	record, err := s.part()
	if err != nil {
		return nil, err
	}
	k, err := decodeSnapshot(record)
	if err != nil {
		return nil, s.corrupt("the record: %w", err)
	}
	s.Snapshot = k.Snapshot
	if s.numbered {
		since, err := s.take(8)
		if err != nil {
			return nil, err
		}
		s.since = binary.LittleEndian.Uint64(since)
	}
	return s, s.follows()
}

// follows returns an error if the stream does not continue the older one.
func (s *Stream) follows() error {
	switch {
	case s.older == nil && s.since != 0:
		return s.corrupt("it has the changes since snapshot %d, which is missing", s.since)
	case s.older != nil && s.older.Snapshot.ID != s.since:
		return s.corrupt("it has the changes since snapshot %d, but %s is snapshot %d", s.since, s.older.name, s.older.Snapshot.ID)
	case s.older != nil && s.older.Format != s.Format:
		return s.corrupt("it does not belong to the same table as %s", s.older.name)
	}
	return nil
}

// Pages calls fn for every page, in ascending order. data is only valid during the call. The pages
// are verified only when Pages has returned nil.
func (s *Stream) Pages(fn func(page uint32, data []byte) error) error {
	for p := s; p != nil; p = p.older {
		if err := p.next(); err != nil {
			return err
		}
	}
	for page := range uint32(s.Format.pages(s.Snapshot.Slots)) {
		data, err := s.newest(page)
		if err != nil {
			return err
		}
		if data == nil {
			return s.corrupt("page %d of %d is missing", page, s.Format.pages(s.Snapshot.Slots))
		}
		if err := fn(page, data); err != nil {
			return err
		}
	}
	// An older stream may have more pages, because slots were merged since.
	for p := s; p != nil; p = p.older {
		for p.ahead.data != nil {
			if p == s {
				return s.corrupt("it has page %d of %d", p.ahead.page, s.Format.pages(s.Snapshot.Slots))
			}
			if err := p.next(); err != nil {
				return err
			}
		}
	}
	return nil
}

// newest returns the newest version of a page, or nil if no stream has it, and advances all streams
// past the page.
func (s *Stream) newest(page uint32) (data []byte, err error) {
	for p := s; p != nil; p = p.older {
		if p.ahead.data == nil || p.ahead.page != page {
			continue
		}
		if data == nil {
			data = p.ahead.data
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// next reads the next page, or the end of the stream and verifies the checksum.
func (s *Stream) next() error {
	last := s.ahead
	s.ahead = streamPage{}
	word, err := s.take(4)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(word)
	if n == 0 {
		return s.verify()
	}
	number := last.page + 1
	if last.data == nil {
		number = 0
	}
	if s.numbered {
		word, err := s.take(4)
		if err != nil {
			return err
		}
		first := number
		if number = binary.LittleEndian.Uint32(word); number < first {
			return s.corrupt("page %d comes after page %d", number, last.page)
		}
	}
	data, err := s.bytes(n - 1)
	s.ahead = streamPage{number, data}
	return err
}

func (s *Stream) verify() error {
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

// part reads a length and that many bytes.
func (s *Stream) part() ([]byte, error) {
	word, err := s.take(4)
	if err != nil {
		return nil, err
	}
	return s.bytes(binary.LittleEndian.Uint32(word))
}

// bytes reads n bytes. The result is not nil even if n is 0.
func (s *Stream) bytes(n uint32) ([]byte, error) {
	if n > maxStreamPart {
		return nil, s.corrupt("a part has %d bytes", n)
	}
	data, err := s.take(int(n))
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}

// take reads n bytes in steps, so that a damaged length does not allocate more memory than the
// stream has bytes.
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
	return corruption(s.name, fmt.Sprintf("the bytes before %d", s.off), fmt.Errorf(format, args...))
}
