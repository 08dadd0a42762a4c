package hadoop

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// receive reads one packet and compares its checksums.
func (s *blockStream) receive(limit time.Duration) error {
	if _, err := s.r.Discard(s.packet); err != nil {
		return err
	}
	s.packet = 0
	var deadline time.Time
	peek := func(n int) ([]byte, error) {
		if s.r.Buffered() >= n {
			return s.r.Peek(n)
		}
		begin := time.Now()
		if deadline.IsZero() {
			deadline = begin.Add(limit)
			if err := s.conn.SetReadDeadline(deadline); err != nil {
				return nil, err
			}
		}
		b, err := s.r.Peek(n)
		s.waited += time.Since(begin)
		return b, err
	}
	const prefix = 4 + 2
	p, err := peek(prefix)
	if err != nil {
		return err
	}
	payload, header := int64(binary.BigEndian.Uint32(p))-4, int(binary.BigEndian.Uint16(p[4:]))
	if payload < 0 || payload > maxPacketBytes {
		return s.fault(bad, fmt.Errorf("it sent a packet of %d bytes, which is not a valid length", payload))
	}
	size := prefix + header + int(payload)
	if size > s.r.Size() {
		s.r = bufio.NewReaderSize(s.r, size) // it reads from the smaller buffer, which may still hold bytes
	}
	if p, err = peek(size); err != nil {
		return err
	}
	s.packet = size
	s.got += int64(size)
	return s.verify(p[prefix:prefix+header], p[prefix+header:])
}

// verify parses a packet, compares its checksums and puts the bytes that are good and
// wanted into s.data.
func (s *blockStream) verify(header, payload []byte) error {
	h, err := parsePacketHeader(header)
	if err != nil {
		return s.fault(bad, err)
	}
	chunks := (h.length + s.chunk - 1) / s.chunk
	sums := 0
	if s.table != nil {
		sums = 4 * chunks
	}
	switch {
	case h.length == 0:
		return s.fault(bad, fmt.Errorf("it ends at byte %d of %d", s.at, s.b.length))
	case h.length < 0 || len(payload) != sums+h.length || h.offset != s.at:
		return s.fault(bad, fmt.Errorf("it sent a packet of %d bytes for byte %d, with %d bytes of data, where byte %d was expected",
			len(payload), h.offset, h.length, s.at))
	}
	checksums, data := payload[:sums], payload[sums:]
	good := len(data)
	for i := 0; i < sums/4; i++ {
		begin := i * s.chunk
		if crc32.Checksum(data[begin:min(begin+s.chunk, len(data))], s.table) != binary.BigEndian.Uint32(checksums[4*i:]) {
			good = begin
			s.err = s.fault(bad, errChecksum)
			break
		}
	}
	// The first chunk may begin before what is wanted, the last one end after it.
	first := min(max(s.from-s.at, 0), int64(good))
	last := min(s.b.length-s.at, int64(good))
	s.at += int64(good)
	if s.data = data[first:max(first, last)]; len(s.data) == 0 {
		if s.err == nil {
			s.err = s.fault(bad, errors.New("it sent a packet with none of the bytes that were requested"))
		}
		return s.err
	}
	return nil
}

// packetHeader is a PacketHeaderProto.
type packetHeader struct {
	offset int64 // in the block
	length int   // of the data
}

// parsePacketHeader parses a header without making a message, for speed: there is a
// header for every 64 KiB.
func parsePacketHeader(b []byte) (h packetHeader, err error) {
	seen := 0
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return h, protowire.ParseError(n)
		}
		b = b[n:]
		switch {
		case num == 1 && kind == protowire.Fixed64Type:
			var v uint64
			v, n = protowire.ConsumeFixed64(b)
			h.offset = int64(v)
			seen |= 1
		case num == 4 && kind == protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			h.length = int(int32(v))
			seen |= 2
		default:
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if n < 0 {
			return h, protowire.ParseError(n)
		}
		b = b[n:]
	}
	if seen != 3 {
		return h, errors.New("it sent a packet header without an offset or a length")
	}
	return h, nil
}
