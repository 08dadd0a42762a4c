package source

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// gzipReader reads the members of a gzip file as one stream. Like gzip(1), it treats
// zero bytes after a member as padding, which tapes and block devices add.
type gzipReader struct {
	br       *bufio.Reader
	z        *gzip.Reader
	consumed func() int64 // bytes taken from br
	member   int64        // where the current member begins
}

func newGzipReader(br *bufio.Reader, consumed func() int64) (*gzipReader, error) {
	z, err := gzip.NewReader(br)
	if err != nil {
		return nil, headerCut(err)
	}
	z.Multistream(false)
	return &gzipReader{br: br, z: z, consumed: consumed}, nil
}

func (g *gzipReader) Read(p []byte) (int, error) {
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
func (g *gzipReader) nextMember() error {
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
	if err := g.z.Reset(g.br); err != nil {
		return headerCut(err)
	}
	g.z.Multistream(false)
	return nil
}

// headerCut is the error of reading a member's header of which at least one byte was
// there. The library gives io.EOF where the data end within one of the header's fields.
func headerCut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (g *gzipReader) Close() error { return g.z.Close() }
