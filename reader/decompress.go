package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"aibox/internal/panics"
	"aibox/reader/source"
)

// A compressed file cannot be read in ranges: one goroutine, its decompressor,
// decompresses it and cuts the text after line ends into units, which the workers
// parse. So that reading is not limited to the speed of one core, the next few files
// are decompressed at the same time:
//
//	part-0.gz --units--> planner, which takes the files one after another
//	part-1.gz --units--| waits: AheadChunks units are ready
//	part-2.gz --units--| waits or is at its end
//	part-3.gz            begins when part-0.gz is done
//
// The order of the units is that of the files. An error is a unit as well, so that
// it is reported when the turn of its file has come, however early the file was read.
//
// How much text is decompressed ahead is bounded, and so is the gain. If one
// decompressor makes g bytes/s, a file of n bytes of text, a of which are decompressed
// before its turn, takes (n-a)/g seconds instead of n/g: files of up to twice
// AheadChunks*ChunkBytes keep two decompressors busy all the time, and much larger ones
// hardly more than one.

// maxDecompressors bounds how many files are decompressed at the same time: each
// holds memory and, on HDFS, a connection to a DataNode. One core makes some 240
// MB/s of text from gzip and reads some 55 MB/s of Criteo (BenchmarkGzipFiles), so
// that eight feed about 30 threads.
const maxDecompressors = 8

// decompressors is how many files are decompressed at the same time.
func (o *Options) decompressors() int { return min(o.Threads, maxDecompressors) }

// maxTexts is how many chunks of decompressed text exist at most. Each file that is
// being decompressed has those that are ready, one that waits for room in the queue
// and one that is being filled; the others belong to units between the planner and
// the workers.
func (o *Options) maxTexts() int { return o.decompressors()*(o.AheadChunks+2) + 2*o.Threads + 2 }

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

// decompress starts a file's decompressor and returns the units that it makes. The
// channel is closed at the file's end, behind a unit with an error, or early when
// ctx is done.
func (s *stream) decompress(ctx context.Context, file *inputFile) <-chan *unit {
	units := make(chan *unit, s.options.AheadChunks)
	s.workers.Go(func() {
		defer close(units)
		c := &cutter{stream: s, ctx: ctx, file: file, units: units}
		err := panics.Do("decompressing "+file.URI, func() error {
			c.decompress()
			s.releaseText(c.text)
			return nil
		})
		if err != nil {
			c.fail(err)
		}
	})
	return units
}

// planText submits the units of a compressed file; false means that reading has
// ended.
func (s *stream) planText(units <-chan *unit) bool {
	for u := range units {
		failed := u.err != nil // read now, since the unit belongs to a worker once it is submitted
		if !s.submit(u) || failed {
			return false
		}
	}
	return s.ctx.Err() == nil // otherwise the decompressor may have stopped before the file's end
}

// fail submits an error in the place of the file's next unit.
func (s *stream) fail(file *inputFile, err error) bool {
	s.submit(&unit{file: file, err: fmt.Errorf("reader: %w", err)})
	return false
}

// cutter cuts decompressed text into units of whole lines.
type cutter struct {
	stream *stream
	ctx    context.Context
	file   *inputFile
	units  chan<- *unit
	number int // of the next unit
	in     *source.Decompressor
	stored int64  // stored bytes that the units so far account for
	offset int64  // of text[0]
	text   []byte // not yet in a unit
	head   int64  // bytes before it that were skipped
}

// decompress makes units of the whole file.
func (c *cutter) decompress() {
	raw, err := c.stream.options.Sources.OpenRange(c.ctx, c.file.File, 0)
	if err != nil {
		c.fail(err)
		return
	}
	defer raw.Close()
	if c.in, err = source.Decompress(c.file.Compression, raw); err != nil {
		c.end(err)
		return
	}
	defer func() { _ = c.in.Close() }() // a decoder
	c.end(c.cut(c.in))
}

// cut makes units up to the end of the text and returns what ended it: io.EOF, or
// an error, which is errStopped if nobody takes the units any more.
func (c *cutter) cut(r io.Reader) error {
	o := c.stream.options
	c.text = c.stream.newText()
	for empty := 0; ; {
		size := len(c.text)
		if size == cap(c.text) {
			// There is no line end in a whole chunk. The buffer grows until the
			// line is certainly too long, as in lineScanner.next.
			if size > o.MaxLineBytes+1 {
				if err := c.skipLine(r); err != nil {
					return err
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
			return err
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty == 100 {
			return io.ErrNoProgress
		}
		if len(c.text) == cap(c.text) {
			if i := bytes.LastIndexByte(c.text, '\n'); i >= 0 && !c.emit(i+1, c.in.Consumed(), nil) {
				return errStopped
			}
		}
	}
}

// errStopped ends a cutter whose units nobody takes any more. It is not reported to
// the caller.
var errStopped = errors.New("reading has ended")

// emit makes a unit of the first n bytes of the text and keeps the rest; false
// means that reading has ended. A unit before the one with which reading starts is
// dropped. Up to and including this unit, read stored bytes of the file are accounted for.
// lost is what is lost after the unit.
func (c *cutter) emit(n int, read int64, lost *damage) bool {
	u := &unit{
		file: c.file, number: c.number, start: c.offset, end: c.offset + int64(n), text: c.text[:n], head: c.head, stored: read - c.stored, lost: lost,
	}
	c.number++
	c.head = 0
	rest := c.stream.newText()
	if left := len(c.text) - n; left > cap(rest) {
		rest = make([]byte, 0, 2*left)
	}
	c.text = append(rest, c.text[n:]...)
	c.offset += int64(n)
	c.stored = read
	if u.number < c.file.from {
		c.stream.releaseText(u.text)
		return c.ctx.Err() == nil
	}
	return c.send(u)
}

// send hands a unit to the planner; false means that reading has ended.
func (c *cutter) send(u *unit) bool {
	select {
	case c.units <- u:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// fail puts an error in the place of the file's next unit.
func (c *cutter) fail(err error) {
	c.send(&unit{file: c.file, err: fmt.Errorf("reader: %w", err)})
}

// skipLine makes a unit of the beginning of a line that is too long and skips the
// rest of the line.
func (c *cutter) skipLine(r io.Reader) error {
	if !c.emit(len(c.text), c.in.Consumed(), nil) {
		return errStopped
	}
	for {
		n, err := r.Read(c.text[:cap(c.text)])
		if i := bytes.IndexByte(c.text[:n], '\n'); i >= 0 {
			c.offset += int64(i + 1)
			c.head += int64(i + 1)
			c.text = append(c.text[:0], c.text[i+1:n]...)
			return err
		}
		c.offset += int64(n)
		c.head += int64(n)
		if err != nil {
			return err
		}
	}
}

// end makes units of what is left when the text ends with err, io.EOF if all is
// well.
func (c *cutter) end(err error) {
	if errors.Is(err, errStopped) {
		return
	}
	// The rest of the file's bytes are accounted for, even if they cannot be read.
	all, lines := c.file.Size, bytes.LastIndexByte(c.text, '\n')+1
	switch {
	case errors.Is(err, io.EOF):
		c.emit(len(c.text), all, nil)
	case badStream(err):
		if changed := c.stream.options.Sources.Unchanged(c.ctx, c.file.File); changed != nil {
			c.fail(changed)
			return
		}
		// The line that the fault cut is part of what is lost.
		lost := &damage{cause: err.Error(), offset: c.offset + int64(lines), rows: -1}
		if cutShort(err) {
			lost.cut = true
		} else if lost.bytes = all; c.in != nil {
			lost.bytes = all - c.in.Sound()
		}
		c.emit(lines, all, lost)
	case len(c.text) == 0 || c.emit(lines, all, nil):
		c.fail(fmt.Errorf("%s: %w", c.file.URI, err))
	}
}

// newText returns an empty buffer of a chunk.
func (s *stream) newText() []byte {
	text, ok := s.texts.get()
	if !ok {
		text = make([]byte, 0, s.options.ChunkBytes)
	}
	return text
}

// releaseText takes a unit's text back, unless it was made for a longer line.
func (s *stream) releaseText(text []byte) {
	if int64(cap(text)) == s.options.ChunkBytes {
		s.texts.put(text[:0])
	}
}
