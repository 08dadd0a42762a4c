package reader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"aibox/internal/panics"
	"aibox/reader/internal/examples"
	"aibox/reader/internal/faults"
	"aibox/reader/internal/numbering"
	"aibox/reader/internal/rowtext"
	"aibox/reader/source"
)

// stream decodes the input by several workers and yields the blocks in the order
// of the input.
//
//	decompressors --units of a file--> planner --units--> workers --blocks--> next
//	                                      \------ the same units, in order ----^
//
// The planner cuts the input into units and puts each into two queues: work,
// from which the workers take it, and order, from which next takes it. Units of a
// compressed file come to it from the file's decompressor (see decompress.go). A
// unit's blocks come through a channel of its own. The stream cannot deadlock: next
// always waits for the oldest unit, whose worker waits for no one else; the planner
// waits for the oldest file; and no decompressor waits for another one.
//
// Memory: at most 2*threads+1 units are between planner and consumer. A unit
// yields blocks of at most about blockBytes each, of which blocksAhead+1 exist at a time
// besides the one that the consumer holds. Units of compressed files also hold their text;
// maxTexts says how many such texts there are at most.
type stream struct {
	options *Options
	plan    *examples.Plan
	files   []*inputFile

	cancel  context.CancelFunc
	ctx     context.Context
	workers sync.WaitGroup
	order   chan *unit
	work    chan *unit
	drafts  chan *draft // mini-batches to be made
	idle    chan *numbering.Merger
	blocks  freeList[*block]
	texts   freeList[[]byte]
	current *unit // the one that next is reading

	mu struct {
		sync.Mutex
		parquet map[*openParquetFile]struct{} // those that are open
	}
}

// unit is what one worker decodes at a time: a byte range of an uncompressed
// file, lines of a decompressed file, or a row group. The worker owns it until
// it closes blocks.
type unit struct {
	file   *inputFile
	number int              // in its file; Parquet: of the row group
	start  int64            // offset in the (decompressed) text; Parquet: number of the first row
	end    int64            // byte ranges: lines that start from here on belong to the next unit
	text   []byte           // lines of a decompressed file, else nil
	open   *openParquetFile // Parquet, else nil
	head   int64            // bytes of text before start that belong to no unit: they end a line that is too long
	stored int64            // stored bytes that the unit accounts for
	lost   *faults.Damage   // what is lost after these lines; nil: nothing

	blocks chan *block
	err    error // why decoding ended; valid once blocks is closed
}

// blockBytes is the size at which a worker hands a block on before its unit ends. The lines
// of a chunk fit one block: decoded lines of Criteo take 1.5 times as much memory as their
// text. Larger blocks of Parquet would leave the caches before they are used.
func (o *Options) blockBytes() int { return int(2*o.ChunkBytes) + 64<<10 }

// blocksAhead is how many blocks of a unit may wait for their turn. Two of the default size, and
// one that is being decoded, hold about 65,000 examples of 39 features. Row groups of up to that
// many rows are decoded entirely in parallel, and larger ones only in their first part.
const blocksAhead = 2

func newStream(ctx context.Context, o *Options, p *examples.Plan, files []*inputFile) *stream {
	s := &stream{
		options: o, plan: p, files: files,
		order:  make(chan *unit, 2*o.Threads),
		work:   make(chan *unit, 2*o.Threads),
		drafts: make(chan *draft, o.Threads+1),
		idle:   make(chan *numbering.Merger),
		blocks: freeList[*block]{most: (blocksAhead+1)*o.Threads + 4},
		texts:  freeList[[]byte]{most: o.maxTexts()},
	}
	s.mu.parquet = map[*openParquetFile]struct{}{}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.workers.Go(func() {
		defer close(s.work)
		defer close(s.order)
		if err := panics.Do("the planner of the reader", s.planUnits); err != nil {
			s.submit(&unit{err: err})
		}
	})
	for range o.Threads {
		s.workers.Go(s.decodeUnits)
	}
	return s
}

// close stops the goroutines, waits for them and closes what they left open.
func (s *stream) close() error {
	s.cancel()
	s.workers.Wait()
	return s.closeParquet()
}

// next returns the next block, io.EOF after the last one. The caller gives it
// back with release.
func (s *stream) next(ctx context.Context) (*block, error) {
	for {
		if s.current == nil {
			select {
			case u, more := <-s.order:
				if !more {
					if err := s.ctx.Err(); err != nil {
						return nil, context.Cause(s.ctx)
					}
					return nil, io.EOF
				}
				s.current = u
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-s.ctx.Done():
				return nil, context.Cause(s.ctx)
			}
		}
		select {
		case b, more := <-s.current.blocks:
			if more {
				return b, nil
			}
			if s.current.err != nil {
				return nil, s.current.err
			}
			s.current = nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.ctx.Done():
			return nil, context.Cause(s.ctx)
		}
	}
}

// release ends the use of a block by one of its users.
func (s *stream) release(b *block) {
	if b.users.Add(-1) == 0 {
		s.blocks.put(b)
	}
}

// newBlock returns an empty block for rows of the file.
func (s *stream) newBlock(file *inputFile) *block {
	b, ok := s.blocks.get()
	if !ok {
		b = newBlock()
	}
	b.reset(file)
	b.users.Store(1)
	return b
}

// decodeUnits is the loop of one worker. Mini-batches take precedence over units, because they are
// needed sooner. It runs until the stream is closed.
func (s *stream) decodeUnits() {
	w := &worker{stream: s}
	work := s.work
	for {
		select {
		case d := <-s.drafts:
			w.batches.make(s, d)
			continue
		default:
		}
		select {
		case d := <-s.drafts:
			w.batches.make(s, d)
		case m := <-s.idle:
			m.Help()
		case u, more := <-work:
			if !more {
				work = nil // no more units come
				continue
			}
			if u.err == nil {
				u.err = panics.Do("reading "+u.file.URI, func() error { return w.decode(u) })
			}
			close(u.blocks)
		case <-s.ctx.Done():
			return
		}
	}
}

// worker is the state of one worker.
type worker struct {
	stream *stream
	lines  rowtext.Lines
	text   rowtext.Lines // scans the text of a unit, without a buffer of its own
	unit   *unit
	block  *block

	batches batchMaker
}

// decode decodes a unit. Errors name the file.
func (w *worker) decode(u *unit) error {
	w.unit = u
	w.block = w.stream.newBlock(u.file)
	w.block.head = u.head
	var err error
	switch {
	case u.file.parquet != nil:
		err = w.decodeRowGroup()
	case u.text != nil:
		w.text.ResetBytes(u.text, u.start, w.stream.options.MaxLineBytes)
		err = w.decodeLines(&w.text)
		w.stream.releaseText(u.text)
		u.text = nil
	case u.lost == nil && !u.file.empty:
		err = w.decodeRange()
	}
	if err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	if u.lost != nil {
		w.lose(*u.lost)
	}
	w.block.stored, w.block.textEnd = u.stored, u.end
	return w.emit()
}

// lose hands the block on, followed by a loss that starts at the block's next line.
func (w *worker) lose(d faults.Damage) {
	d.Line += w.block.lines
	w.block.lost = &d
}

// decodeRange decodes the lines that start in a byte range of a file. Lines does not read beyond the
// range, so it is Close that notices that the file has changed meanwhile.
func (w *worker) decodeRange() (err error) {
	u := w.unit
	// The byte before the range tells whether a line starts with the range.
	from := max(u.start-1, 0)
	raw, err := w.stream.options.Sources.OpenRange(w.stream.ctx, u.file.File, from)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, raw.Close()) }()
	w.lines.Reset(raw, from, u.end, w.stream.options.MaxLineBytes)
	if u.start > 0 {
		if err := w.lines.SkipLine(); err != nil {
			return err
		}
		w.block.head = min(w.lines.Offset(), u.end) - u.start
		w.block.headOpen = w.lines.Offset() >= u.end
	}
	if err := w.decodeLines(&w.lines); err != nil {
		return err
	}
	if got := w.lines.Offset(); got < u.end {
		return fmt.Errorf("read %s: it ends at byte %d, but had %d bytes when it was listed: %w", u.file.URI, got, u.file.Size, io.ErrUnexpectedEOF)
	}
	return nil
}

// decodeLines decodes the lines of the scanner.
func (w *worker) decodeLines(lines *rowtext.Lines) error {
	o, p := w.stream.options, w.stream.plan
	decoder := p.NewDecoder(w.unit.file.cells)
	header := w.unit.start == 0 && p.Schema.Header
	indexed := p.Schema.Format.Indexed()
	limit := o.blockBytes()
	for {
		line, offset, tooLong, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b := w.block
		if offset == 0 {
			line = rowtext.TrimBOM(line)
		}
		switch {
		case header:
			header = false
		case tooLong:
			// How many bytes beyond MaxLineBytes the scanner has seen depends on how
			// the input is cut, so they are not reported.
			line = line[:min(len(line), o.MaxLineBytes)]
			b.addBad(p, ofFirst(faults.Fault{Reason: faults.ReasonTooLong}, line, offset), line, offset, o)
			b.bad.Entries[len(b.bad.Entries)-1].Length = min(lines.Offset(), w.unit.end) - offset
			b.open = lines.Offset() >= w.unit.end
		case len(line) == 0, indexed && examples.IsComment(line):
		default:
			if f := decoder.Decode(line, &b.List); f.Reason == faults.None {
				b.addGood(p, offset)
			} else {
				b.addBad(p, ofFirst(f, line, offset), line, offset, o)
				if lines.Open() && w.unit.lost == nil && f.PartOfRow(line, p.Schema.Delimiter) {
					w.unit.lost = &faults.Damage{
						Cause:  "the file ends in the middle of a row; if the file is complete, add a line end after its last line",
						Offset: offset, Line: -1, Rows: -1, Cut: true,
					}
				}
			}
		}
		b.lines++
		if b.bytes() > limit {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
}

// ofFirst adds to the fault of the first row of a file what the file seems to be instead of text.
func ofFirst(f faults.Fault, line []byte, offset int64) faults.Fault {
	if offset == 0 && (f.Reason == faults.ReasonColumns || f.Reason == faults.ReasonTooLong || f.Reason == faults.ReasonUTF8) {
		f.File = oddText(line)
	}
	return f
}

// flush hands the block on in the middle of a unit.
func (w *worker) flush() error {
	if err := w.emit(); err != nil {
		return err
	}
	w.block = w.stream.newBlock(w.unit.file)
	return nil
}

// emit hands the block on. While the channel is full, the worker makes mini-batches and helps to
// number their keys.
func (w *worker) emit() error {
	for {
		select {
		case w.unit.blocks <- w.block:
			w.block = nil
			return nil
		case d := <-w.stream.drafts:
			w.batches.make(w.stream, d)
		case m := <-w.stream.idle:
			m.Help()
		case <-w.stream.ctx.Done():
			return context.Cause(w.stream.ctx)
		}
	}
}

// planUnits is the planner: it cuts the files into units. It starts the decompressor
// of a compressed file a few files before that file's turn.
func (s *stream) planUnits() error {
	ctx, stop := context.WithCancel(s.ctx) // it ends decompressors of later files after a fault
	defer stop()
	texts := make([]<-chan *unit, len(s.files)) // of the compressed files that have been begun
	first := 0
	if at := startOf(s.options); at != nil {
		first = at.File
	}
	begun := first
	for i := first; i < len(s.files); i++ {
		file := s.files[i]
		for ; begun < min(i+s.options.decompressors(), len(s.files)); begun++ {
			if f := s.files[begun]; f.Compression != source.NoCompression && !f.empty && f.damaged == nil {
				texts[begun] = s.decompress(ctx, s.files[begun])
			}
		}
		var ok bool
		switch {
		case file.empty || file.damaged != nil:
			ok = s.submit(&unit{file: file, stored: file.Size, lost: file.damaged})
		case file.parquet != nil:
			ok = s.planRowGroups(file)
		case texts[i] != nil:
			ok = s.planText(texts[i])
		default:
			ok = s.planRanges(file)
		}
		if !ok {
			return nil
		}
	}
	return nil
}

// submit puts a unit into the queues; false means that reading has ended.
func (s *stream) submit(u *unit) bool {
	u.blocks = make(chan *block, blocksAhead)
	for _, queue := range []chan *unit{s.order, s.work} {
		select {
		case queue <- u:
		case <-s.ctx.Done():
			return false
		}
	}
	return true
}

// planRanges cuts an uncompressed file into ranges of ChunkBytes.
func (s *stream) planRanges(file *inputFile) bool {
	for number := file.from; ; number++ {
		start := int64(number) * s.options.ChunkBytes
		if start >= file.Size {
			return true
		}
		end := min(start+s.options.ChunkBytes, file.Size)
		if !s.submit(&unit{file: file, number: number, start: start, end: end, stored: end - start}) {
			return false
		}
	}
}
