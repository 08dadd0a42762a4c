package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Compression says how a file's bytes are compressed.
type Compression uint8

// The kinds of compression that Decompress knows.
const (
	NoCompression Compression = iota
	Gzip
	Zstd
	Snappy // framing format, or Hadoop's block format; told apart by the first bytes
	Bzip2
	Deflate // zlib's format, in files of Hadoop's DefaultCodec
)

var compressionNames = [...]string{"none", "gzip", "zstd", "snappy", "bzip2", "deflate"}

func (c Compression) String() string {
	if int(c) < len(compressionNames) {
		return compressionNames[c]
	}
	return fmt.Sprintf("Compression(%d)", uint8(c))
}

// ParseCompression is the inverse of String.
func ParseCompression(name string) (Compression, error) {
	for c, n := range compressionNames {
		if n == name {
			return Compression(c), nil
		}
	}
	return 0, fmt.Errorf("unknown compression %q: one of %s", name, strings.Join(compressionNames[:], ", "))
}

// CompressionOf tells a file's compression by its extension: .gz .gzip .zst
// .zstd .snappy .sz .bz2 .deflate, in any case; anything else is NoCompression.
func CompressionOf(name string) Compression {
	switch strings.ToLower(path.Ext(name)) {
	case ".gz", ".gzip":
		return Gzip
	case ".zst", ".zstd":
		return Zstd
	case ".snappy", ".sz":
		return Snappy
	case ".bz2":
		return Bzip2
	case ".deflate":
		return Deflate
	}
	return NoCompression
}

// inputBufferBytes is how much a decompressor reads from the file at a time.
const inputBufferBytes = 256 << 10

// maxZstdWindowBytes bounds what a hostile or unusual zstd file makes us allocate. It
// is the default limit of zstd(1) as well: all levels and --long stay within it, and
// files written with --long=28 to --long=31, which need up to 2 GiB, are refused by
// `zstd -d` too.
const maxZstdWindowBytes = 128 << 20

// checkZstdWindow refuses a file whose first frame has a window above the limit. The
// decoder would report it as if it were corrupt data.
func checkZstdWindow(br *bufio.Reader) error {
	first, _ := br.Peek(zstd.HeaderMaxSize) // a failed read fails again in the decoder
	var header zstd.Header
	if header.Decode(first) != nil || header.WindowSize <= maxZstdWindowBytes {
		return nil
	}
	return fmt.Errorf("%w: the zstd window is %d MiB large, but at most %d are allowed: compress the file without --long, or with --long=27 at most",
		ErrUnsupported, header.WindowSize>>20, maxZstdWindowBytes>>20)
}

// Decompress returns the decompressed stream of r. Members or frames that
// follow one another are read as one stream (cat a.gz b.gz). Closing it frees
// the decompressor; it does not close r.
//
// Data that ends early gives an error that wraps io.ErrUnexpectedEOF, data
// that does not decompress one that wraps ErrBadStream, and an error of r is
// passed on as it is. A zstd window above 128 MiB gives ErrUnsupported. Zero bytes
// after gzip and zlib data are padding. The snappy formats and zstd have no end mark for the
// whole file: a file cut exactly between two chunks or frames looks complete.
func Decompress(c Compression, r io.Reader) (*Decompressor, error) {
	in := &faultReader{r: r}
	d := &Decompressor{c: c, in: in}
	if c == NoCompression {
		d.r = in
		return d, nil
	}
	br := bufio.NewReaderSize(in, inputBufferBytes)
	d.br = br

	// An empty file is no valid compressed file in any of the formats, though
	// some decoders take it for an empty stream.
	first, err := br.Peek(len(snappyMagic))
	if len(first) == 0 {
		if err = in.cause(err); errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, d.wrap(err)
	}
	err = nil // the file is shorter than the bytes to peek at, or the decoder gets the same error
	if !c.begins(first) {
		return nil, &notCompressedError{c}
	}
	switch c {
	case Gzip, Deflate:
		open := newGzipReader
		if c == Deflate {
			open = newZlibReader
		}
		var z *memberReader
		if z, err = open(br, d.consumed); err == nil {
			d.r, d.block, d.close, d.members = z, 32<<10, z.Close, z // the window
		}
	case Zstd:
		if err := checkZstdWindow(br); err != nil {
			return nil, err
		}
		// One goroutine is enough, since the reader decodes several files at a time.
		var z *zstd.Decoder
		z, err = zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindowBytes))
		if err == nil {
			d.r, d.block, d.close = z, 128<<10, func() error { z.Close(); return nil }
		}
	case Snappy:
		d.r, d.block = newSnappyReader(br, first), 256<<10 // the default block of Hadoop's format; the framing format has 64 KiB
	case Bzip2:
		d.r, d.block = bzip2.NewReader(br), maxBzip2BlockBytes
		if len(first) > 3 && first[3] >= '1' && first[3] <= '9' { // the level, as in bzip2 -9
			d.block = int64(first[3]-'0') * maxBzip2BlockBytes / 9
		}
	default:
		return nil, fmt.Errorf("decompress: %v", c)
	}
	if err != nil {
		return nil, d.wrap(err)
	}
	return d, nil
}

// begins reports whether data of that compression may begin with these bytes.
func (c Compression) begins(first []byte) bool {
	is := func(magic string) bool { return bytes.HasPrefix(first, []byte(magic)) || len(first) < len(magic) }
	switch c {
	case Gzip:
		return is("\x1f\x8b")
	case Zstd: // its frames, or those that are skipped
		return is("\x28\xb5\x2f\xfd") || first[0]&0xf0 == 0x50 && bytes.HasPrefix(first[1:], []byte("\x2a\x4d\x18"))
	case Bzip2:
		return is("BZh")
	case Deflate:
		return isZlib(first)
	}
	return true
}

// isZlib reports whether data begin with a header of zlib (RFC 1950).
func isZlib(first []byte) bool {
	return len(first) < 2 || first[0]&0x0f == 8 && (int(first[0])<<8|int(first[1]))%31 == 0
}

// notCompressedError says that data are not what the file name says, such as text in a file called
// x.gz.
type notCompressedError struct{ c Compression }

func (e *notCompressedError) Error() string {
	return fmt.Sprintf("this is not %v, although the name of the file or data.compression says so, since it begins differently; if it is plain text, rename the file, or set data.compression to none", e.c)
}

func (e *notCompressedError) Unwrap() error { return ErrBadStream }

// maxBzip2BlockBytes is how much text a block of bzip2 -9 holds.
const maxBzip2BlockBytes = 900_000

// faultReader remembers the error of the reader below the decoder, so that an
// I/O fault is not mistaken for bad data whatever the decoder makes of it.
type faultReader struct {
	r   io.Reader
	n   int64 // bytes read
	err error // other than io.EOF
}

func (f *faultReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.n += int64(n)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

func (f *faultReader) cause(err error) error {
	if f.err != nil {
		return f.err
	}
	return err
}

// Decompressor is the text of compressed data. It belongs to one goroutine.
type Decompressor struct {
	c       Compression
	in      *faultReader
	br      *bufio.Reader // between in and the decoder; nil without one
	members *memberReader // nil but for gzip and zlib
	r       io.Reader
	close   func() error
	block   int64 // bytes of text that the decoder holds at most; except in gzip and zlib, one checksum covers them
	text    int64 // bytes of text that were read
	err     error
}

// Read reads text. Its errors are those that Decompress names.
func (d *Decompressor) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.r.Read(p)
	d.text += int64(n)
	if err != nil {
		d.err = d.wrap(err)
		if n > 0 {
			return n, nil
		}
	}
	return n, d.err
}

// consumed is how many stored bytes the decoder has taken so far.
func (d *Decompressor) consumed() int64 {
	if d.br == nil {
		return d.in.n
	}
	return d.in.n - int64(d.br.Buffered())
}

// Consumed estimates the number of stored bytes of the text that Read has returned. It is only an
// estimate, because the decoder may hold a block of text that it has not returned yet.
func (d *Decompressor) Consumed() int64 {
	consumed := d.consumed()
	if d.text == 0 {
		return 0
	}
	block := float64(d.block) * (float64(consumed) / float64(d.text))
	return consumed - min(consumed, int64(block))
}

// ValidBytes returns how many stored bytes precede the fault that Read has met. The bytes after them are
// lost, or cannot be trusted because their checksum does not match. A checksum covers a gzip
// member, a zlib stream, a zstd frame (frames are not distinguished here, so all of the data count
// as one) or a block of the other formats. The decoder checks a block after it has read all of it,
// so the position of its beginning is an estimate. If the data end early, all existing bytes are
// valid.
func (d *Decompressor) ValidBytes() int64 {
	switch {
	case d.err == io.EOF, errors.Is(d.err, io.ErrUnexpectedEOF):
		return d.consumed()
	case errors.Is(d.err, gzip.ErrChecksum), errors.Is(d.err, zlib.ErrChecksum):
		return d.members.member
	case errors.Is(d.err, zstd.ErrCRCMismatch):
		return 0
	case d.members != nil && d.text > 0:
		return d.consumed() // what was decoded before the fault was returned
	}
	return d.Consumed()
}

// wrap classifies an error of the decoder.
func (d *Decompressor) wrap(err error) error {
	switch {
	case d.in.err != nil:
		return d.in.err
	case err == io.EOF:
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%v data ends early: %w", d.c, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%w: %v: %w", ErrBadStream, d.c, err)
}

// Close frees the decoder. It does not close what is read from.
func (d *Decompressor) Close() error {
	if d.close == nil {
		return nil
	}
	return d.close()
}
