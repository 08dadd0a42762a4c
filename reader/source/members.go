package source

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// memberReader reads the members of a gzip file, or the streams of a zlib file, as one stream.
// Like gzip(1), it treats zero bytes after a member as padding, which tapes and block devices add.
type memberReader struct {
	br       *bufio.Reader
	z        io.ReadCloser
	begin    func() error // z begins with the next member, at the beginning of br
	consumed func() int64 // bytes taken from br
	member   int64        // where the current member begins
}

func newGzipReader(br *bufio.Reader, consumed func() int64) (*memberReader, error) {
	z, err := gzip.NewReader(br)
	if err != nil {
		return nil, headerCut(err)
	}
	z.Multistream(false)
	return &memberReader{br: br, z: z, consumed: consumed, begin: func() error {
		if err := z.Reset(br); err != nil {
			return err
		}
		z.Multistream(false)
		return nil
	}}, nil
}

// newZlibReader reads what Hadoop's DefaultCodec writes.
func newZlibReader(br *bufio.Reader, consumed func() int64) (*memberReader, error) {
	z, err := zlib.NewReader(br)
	if err != nil {
		return nil, headerCut(err)
	}
	return &memberReader{br: br, z: z, consumed: consumed, begin: func() error { return z.(zlib.Resetter).Reset(br, nil) }}, nil
}

func (g *memberReader) Read(p []byte) (int, error) {
	for {
		n, err := g.z.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := g.nextMember(); err != nil || n > 0 {
			return n, err
		}
	}
}

// nextMember skips the padding and opens the next member; io.EOF means that none
// follows.
func (g *memberReader) nextMember() error {
	for {
		c, err := g.br.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			break
		}
	}
	if err := g.br.UnreadByte(); err != nil {
		return err
	}
	g.member = g.consumed()
	return headerCut(g.begin())
}

// headerCut is the error of reading a member's header of which at least one byte exists. The
// library returns io.EOF if the data end within one of the header's fields.
func headerCut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (g *memberReader) Close() error { return g.z.Close() }
