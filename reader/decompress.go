package reader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"aibox/reader/source"
)

// A compressed file has no ranges: one goroutine (the planner) decompresses it
// and cuts the text behind line ends into units, which the workers parse.

// countingReader counts what is read of a file; the decompressor may read in a
// goroutine of its own.
type countingReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// badStream says whether an error of source.Decompress is about the compressed
// data; any other one is an I/O error.
func badStream(err error) bool {
	var io1 *source.Error
	var io2 *source.CorruptError
	if errors.As(err, &io1) || errors.As(err, &io2) {
		return false
	}
	return errors.Is(err, source.ErrBadStream) || errors.Is(err, io.ErrUnexpectedEOF)
}

// planText submits the units of a compressed file; false means that reading has
// ended.
func (s *stream) planText(file *inputFile) bool {
	raw, err := s.options.Sources.OpenRange(s.ctx, file.File, 0)
	if err != nil {
		return s.fail(file, err)
	}
	defer raw.Close()
	counted := &countingReader{r: raw}
	cut := &cutter{stream: s, file: file, counted: counted}
	text, err := source.Decompress(file.Compression, counted)
	if err != nil {
		return cut.end(err)
	}
	defer text.Close()
	return cut.run(text)
}

// fail submits an error in the place of the file's next unit.
func (s *stream) fail(file *inputFile, err error) bool {
	s.submit(&unit{file: file, err: fmt.Errorf("reader: %w", err)})
	return false
}

// cutter cuts decompressed text into units of whole lines.
type cutter struct {
	stream  *stream
	file    *inputFile
	counted *countingReader
	stored  int64  // stored bytes that the submitted units account for
	offset  int64  // of text[0]
	text    []byte // not yet submitted
}

// run reads to the end of the text.
func (c *cutter) run(r io.Reader) bool {
	o := c.stream.options
	c.text = c.buffer()
	for empty := 0; ; {
		size := len(c.text)
		if size == cap(c.text) {
			// No line end in a whole chunk. The buffer grows until the line is
			// too long for certain, as in lineScanner.next.
			if size > o.MaxLineBytes+1 {
				if done, err := c.skipLine(r); err != nil {
					return c.end(err)
				} else if done {
					return false
				}
				continue
			}
			grown := make([]byte, size, min(2*size, max(o.MaxLineBytes+2, size+1)))
			copy(grown, c.text)
			c.text = grown
		}
		n, err := r.Read(c.text[size:cap(c.text)])
		c.text = c.text[:size+n]
		if err != nil {
			return c.end(err)
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty == 100 {
			return c.end(io.ErrNoProgress)
		}
		if len(c.text) == cap(c.text) {
			if i := bytes.LastIndexByte(c.text, '\n'); i >= 0 && !c.submit(i+1, nil) {
				return false
			}
		}
	}
}

// buffer returns an empty buffer of a chunk.
func (c *cutter) buffer() []byte {
	select {
	case text := <-c.stream.texts:
		if int64(cap(text)) == c.stream.options.ChunkBytes {
			return text
		}
	default:
	}
	return make([]byte, 0, c.stream.options.ChunkBytes)
}

// submit makes a unit of the first n bytes of the text and keeps the rest.
// broken is the error that ended the text.
func (c *cutter) submit(n int, broken error) bool {
	read := c.counted.n.Load()
	u := &unit{
		file: c.file, start: c.offset, end: c.offset + int64(n), text: c.text[:n], stored: read - c.stored, broken: broken,
	}
	rest := c.buffer()
	if left := len(c.text) - n; left > cap(rest) {
		rest = make([]byte, 0, 2*left)
	}
	c.text = append(rest, c.text[n:]...)
	c.offset += int64(n)
	c.stored = read
	return c.stream.submit(u)
}

// skipLine submits the beginning of a line that is too long and moves behind its
// end. done means that reading has ended.
func (c *cutter) skipLine(r io.Reader) (done bool, err error) {
	size := len(c.text)
	if !c.submit(size, nil) {
		return true, nil
	}
	for {
		n, err := r.Read(c.text[:cap(c.text)])
		if i := bytes.IndexByte(c.text[:n], '\n'); i >= 0 {
			c.offset += int64(i + 1)
			c.text = append(c.text[:0], c.text[i+1:n]...)
			return false, err
		}
		c.offset += int64(n)
		if err != nil {
			return false, err
		}
	}
}

// end submits what is left when the text ends with err, io.EOF if all is well.
func (c *cutter) end(err error) bool {
	// All that is left of the file is accounted for, also if it cannot be read.
	c.counted.n.Store(c.file.Size)
	switch {
	case errors.Is(err, io.EOF):
		return c.submit(len(c.text), nil)
	case badStream(err):
		// The line that the fault cut is part of what is lost.
		return c.submit(bytes.LastIndexByte(c.text, '\n')+1, err)
	default:
		if len(c.text) > 0 && !c.submit(bytes.LastIndexByte(c.text, '\n')+1, nil) {
			return false
		}
		return c.stream.fail(c.file, fmt.Errorf("%s: %w", c.file.URI, err))
	}
}
