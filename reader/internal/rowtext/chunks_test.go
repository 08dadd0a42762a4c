package rowtext

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"aibox/internal/testseed"
)

// TestChunks checks that chunks are consecutive, end at line ends, and lack only the rest of lines
// that are too long, however the text is divided when it is received.
func TestChunks(t *testing.T) {
	const size, maxLine = 30, 50
	rng := testseed.Rand(t)
	for range 2000 {
		var text []byte
		for range rng.IntN(20) {
			line := bytes.Repeat([]byte{'a' + byte(rng.IntN(26))}, rng.IntN([]int{5, 60, 200}[rng.IntN(3)]))
			text = append(append(text, line...), '\n')
		}
		text = text[:max(0, len(text)-rng.IntN(3))]
		var chunks []Chunk
		c := Chunks{
			MaxLine: maxLine, New: func() []byte { return make([]byte, 0, size) },
			Take: func(c Chunk) bool { chunks = append(chunks, c); return true },
		}
		r := []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text)), iotest.DataErrReader(bytes.NewReader(text))}[rng.IntN(3)]
		if err := c.Cut(r); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		chunks = append(chunks, c.Rest())
		end := int64(0)
		for i, c := range chunks {
			if c.Number != i || c.Start != end+c.Head {
				t.Fatalf("%q: chunk %d is %+v, the one before ends at %d", text, i, c, end)
			}
			if head := text[end:c.Start]; c.Head > 0 && (len(chunks[i-1].Text) <= maxLine || bytes.IndexByte(head[:len(head)-1], '\n') >= 0 ||
				c.Start < int64(len(text)) && head[len(head)-1] != '\n') {
				t.Fatalf("%q: chunk %d skips %q", text, i, head)
			}
			end = c.Start + int64(len(c.Text))
			if len(c.Text) > 2*(maxLine+2) || !bytes.Equal(c.Text, text[c.Start:end]) || i < len(chunks)-1 && c.Text[len(c.Text)-1] != '\n' && len(c.Text) <= maxLine {
				t.Fatalf("%q: chunk %d is %q", text, i, c.Text)
			}
		}
		if end != int64(len(text)) {
			t.Fatalf("%q: the chunks end at %d", text, end)
		}
	}
	stopped := Chunks{MaxLine: maxLine, New: func() []byte { return make([]byte, 0, size) }, Take: func(Chunk) bool { return false }}
	if err := stopped.Cut(bytes.NewReader(bytes.Repeat([]byte("a\n"), size))); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
}
