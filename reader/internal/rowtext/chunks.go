package rowtext

import (
	"bytes"
	"errors"
	"io"
)

// Chunk is a run of whole lines of a text, or the beginning of a line that is too long.
type Chunk struct {
	Number int   // of the text's chunks
	Start  int64 // offset in the text
	Text   []byte
	Head   int64 // bytes before Start that are in no chunk: they end a line that is too long
}

// Chunks cuts a text that can only be read sequentially into chunks. Where they end depends only on
// the text and the size of the buffers.
type Chunks struct {
	MaxLine int
	New     func() []byte    // returns an empty buffer that has the size of a chunk
	Take    func(Chunk) bool // takes a chunk, and its buffer; false: no more are taken

	next Chunk // its Text is what has been read and is in no chunk yet
}

// ErrStopped says that Take has returned false.
var ErrStopped = errors.New("reading has ended")

// Cut makes chunks up to the end of the text and returns what ended it: io.EOF, ErrStopped or an
// error of r.
func (c *Chunks) Cut(r io.Reader) error {
	c.next.Text = c.New()
	for empty := 0; ; {
		text := c.next.Text
		size := len(text)
		if size == cap(text) {
			// There is no line end in a whole chunk. The buffer grows until the
			// line is certainly too long, as in Lines.Next.
			if size > c.MaxLine+1 {
				if err := c.skipLine(r); err != nil {
					return err
				}
				continue
			}
			grown := make([]byte, size, min(2*size, max(c.MaxLine+2, size+1)))
			copy(grown, text)
			text = grown
		}
		n, err := r.Read(text[size:cap(text)])
		c.next.Text = text[:size+n]
		if err != nil {
			return err
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty == 100 {
			return io.ErrNoProgress
		}
		if size+n == cap(text) {
			if i := bytes.LastIndexByte(c.next.Text, '\n'); i >= 0 && !c.take(i+1) {
				return ErrStopped
			}
		}
	}
}

// Rest returns, once Cut has ended, the text that was read and is in no chunk yet, as the last
// chunk.
func (c *Chunks) Rest() Chunk { return c.next }

// take makes a chunk of the next n bytes of the text.
func (c *Chunks) take(n int) bool {
	chunk, left, rest := c.next, c.next.Text[n:], c.New()
	if len(left) > cap(rest) {
		rest = make([]byte, 0, 2*len(left))
	}
	chunk.Text = chunk.Text[:n]
	c.next = Chunk{Number: chunk.Number + 1, Start: chunk.Start + int64(n), Text: append(rest, left...)}
	return c.Take(chunk)
}

// skipLine makes a chunk of the beginning of a line that is too long and skips the
// rest of the line.
func (c *Chunks) skipLine(r io.Reader) error {
	if !c.take(len(c.next.Text)) {
		return ErrStopped
	}
	text := c.next.Text // empty
	for {
		n, err := r.Read(text[:cap(text)])
		skipped, ended := n, false
		if i := bytes.IndexByte(text[:n], '\n'); i >= 0 {
			skipped, ended = i+1, true
			c.next.Text = append(text, text[skipped:n]...)
		}
		c.next.Start += int64(skipped)
		c.next.Head += int64(skipped)
		if ended || err != nil {
			return err
		}
	}
}
