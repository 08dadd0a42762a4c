package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
)

// snappyMagic is the stream identifier that starts snappy's framing format.
var snappyMagic = []byte("\xff\x06\x00\x00sNaPpY")

// maxSnappyBlockBytes bounds one block of Hadoop's format; Hadoop's buffer
// (io.compression.codec.snappy.buffersize) is 256 KiB by default.
const maxSnappyBlockBytes = 64 << 20

func newSnappyReader(r io.Reader, first []byte) io.Reader {
	if bytes.HasPrefix(first, snappyMagic[:min(len(first), len(snappyMagic))]) {
		f := &framedSnappyReader{in: endReader{r: r}}
		f.r = s2.NewReader(&f.in, s2.ReaderMaxBlockSize(64<<10)) // the framing format's limit
		return f
	}
	return &hadoopSnappyReader{r: r}
}

// framedSnappyReader distinguishes data that end early from corrupt data; s2 reports
// both as corrupt input.
type framedSnappyReader struct {
	in endReader
	r  io.Reader
}

func (f *framedSnappyReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF && f.in.ended {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// endReader remembers that it has returned io.EOF.
type endReader struct {
	r     io.Reader
	ended bool
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.ended = e.ended || err == io.EOF
	return n, err
}

// hadoopSnappyReader reads what Hadoop's SnappyCodec writes:
//
//	block:  uncompressed length of the block   uint32, big endian
//	        chunk, until that length is reached
//	chunk:  compressed length                  uint32, big endian
//	        one raw snappy block
type hadoopSnappyReader struct {
	r         io.Reader
	blockLeft int64  // uncompressed bytes of the current block that are still to be read
	comp      []byte // the current chunk, compressed
	buf       []byte // the current chunk, uncompressed
	out       []byte // the part of buf that has not been returned yet
}

func (h *hadoopSnappyReader) Read(p []byte) (int, error) {
	for len(h.out) == 0 {
		if err := h.nextChunk(); err != nil {
			return 0, err
		}
	}
	n := copy(p, h.out)
	h.out = h.out[n:]
	return n, nil
}

// nextChunk fills h.out; it returns io.EOF only between blocks.
func (h *hadoopSnappyReader) nextChunk() error {
	for h.blockLeft == 0 {
		n, err := h.length("block", io.EOF)
		if err != nil {
			return err
		}
		h.blockLeft = n
	}
	compressed, err := h.length("chunk", io.ErrUnexpectedEOF)
	if err != nil {
		return err
	}
	if int64(cap(h.comp)) < compressed {
		h.comp = make([]byte, compressed)
	}
	h.comp = h.comp[:compressed]
	if _, err := io.ReadFull(h.r, h.comp); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	size, err := s2.DecodedLen(h.comp)
	if err != nil {
		return err
	}
	if int64(size) > h.blockLeft {
		return fmt.Errorf("a chunk has %d bytes, but only %d of its block are left", size, h.blockLeft)
	}
	if cap(h.buf) < size {
		h.buf = make([]byte, size)
	}
	if h.out, err = s2.Decode(h.buf[:size], h.comp); err != nil {
		return err
	}
	h.blockLeft -= int64(size)
	return nil
}

// length reads a big-endian length; atEnd is the error to return if no bytes are left.
func (h *hadoopSnappyReader) length(what string, atEnd error) (int64, error) {
	var b [4]byte
	if _, err := io.ReadFull(h.r, b[:]); errors.Is(err, io.EOF) {
		return 0, atEnd
	} else if err != nil {
		return 0, err
	}
	n := int64(binary.BigEndian.Uint32(b[:]))
	if n > maxSnappyBlockBytes {
		return 0, fmt.Errorf("%s of %d bytes: this is neither snappy's framing format nor Hadoop's", what, n)
	}
	return n, nil
}
