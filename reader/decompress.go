package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"aibox/internal/panics"
	"aibox/reader/internal/faults"
	"aibox/reader/internal/rowtext"
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
// The amount of text decompressed ahead is bounded, and so is the gain. If one decompressor
// produces g bytes/s, a file with n bytes of text, a of which are decompressed before its turn,
// takes (n-a)/g seconds instead of n/g. Files of up to twice AheadChunks*ChunkBytes thus keep two
// decompressors busy all the time, and much larger ones hardly more than one.

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

// decompress starts a file's decompressor and returns the units that it makes. The channel is
// closed at the file's end, after a unit with an error, or early if ctx is done.
func (s *stream) decompress(ctx context.Context, file *inputFile) <-chan *unit {
	units := make(chan *unit, s.options.AheadChunks)
	s.workers.Go(func() {
		defer close(units)
		d := &decompressor{stream: s, ctx: ctx, file: file, units: units}
		d.chunks = rowtext.Chunks{MaxLine: s.options.MaxLineBytes, New: s.newText, Take: func(c rowtext.Chunk) bool { return d.emit(c, d.in.Consumed(), nil) }}
		err := panics.Do("decompressing "+file.URI, func() error {
			d.decompress()
			return nil
		})
		if err != nil {
			d.fail(err)
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

// decompressor makes units of a compressed file.
type decompressor struct {
	stream *stream
	ctx    context.Context
	file   *inputFile
	units  chan<- *unit
	in     *source.Decompressor
	chunks rowtext.Chunks
	stored int64 // stored bytes that the units so far account for
}

// decompress makes units of the whole file.
func (d *decompressor) decompress() {
	raw, err := d.stream.options.Sources.OpenRange(d.ctx, d.file.File, 0)
	if err != nil {
		d.fail(err)
		return
	}
	defer raw.Close()
	if d.in, err = source.Decompress(d.file.Compression, raw); err != nil {
		d.end(err)
		return
	}
	defer func() { _ = d.in.Close() }() // a decoder
	d.end(d.chunks.Cut(d.in))
}

// emit makes a unit of a chunk; false means that reading has ended. A unit before the one at which
// reading starts is dropped. read is the number of the file's stored bytes that are accounted for
// up to and including this unit. lost is what is lost after the unit.
func (d *decompressor) emit(c rowtext.Chunk, read int64, lost *faults.Damage) bool {
	u := &unit{
		file: d.file, number: c.Number, start: c.Start, end: c.Start + int64(len(c.Text)), text: c.Text, head: c.Head, stored: read - d.stored, lost: lost,
	}
	d.stored = read
	if u.number < d.file.from {
		d.stream.releaseText(u.text)
		return d.ctx.Err() == nil
	}
	return d.send(u)
}

// send hands a unit to the planner; false means that reading has ended.
func (d *decompressor) send(u *unit) bool {
	select {
	case d.units <- u:
		return true
	case <-d.ctx.Done():
		return false
	}
}

// fail puts an error in the place of the file's next unit.
func (d *decompressor) fail(err error) {
	d.send(&unit{file: d.file, err: fmt.Errorf("reader: %w", err)})
}

// end makes units of the remaining text when the text ends with err, which is io.EOF on success.
func (d *decompressor) end(err error) {
	if errors.Is(err, rowtext.ErrStopped) {
		return
	}
	rest := d.chunks.Rest()
	whole := rest // without the beginning of a line, which is part of what is lost
	whole.Text = rest.Text[:bytes.LastIndexByte(rest.Text, '\n')+1]
	all := d.file.Size // its bytes are accounted for, even if they cannot be read
	switch {
	case errors.Is(err, io.EOF):
		d.emit(rest, all, nil)
	case badStream(err):
		if changed := d.stream.options.Sources.Unchanged(d.ctx, d.file.File); changed != nil {
			d.fail(changed)
			return
		}
		lost := &faults.Damage{Cause: err.Error(), Offset: whole.Start + int64(len(whole.Text)), Rows: -1}
		if faults.CutShort(err) {
			lost.Cut = true
		} else if lost.Bytes = all; d.in != nil {
			lost.Bytes = all - d.in.ValidBytes()
		}
		d.emit(whole, all, lost)
	case len(rest.Text) == 0 || d.emit(whole, all, nil):
		d.fail(fmt.Errorf("%s: %w", d.file.URI, err))
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
