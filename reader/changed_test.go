package reader

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"aibox/reader/source"
)

// TestTextChangedWhileRead checks that a file that is written again while its only range is read
// does not give old and new rows without an error. The file ends with a line end, after which Lines
// reads nothing.
func TestTextChangedWhileRead(t *testing.T) {
	text := func(label string) []byte {
		good := strings.Repeat(label+",0,c,\n", 1000)
		// A bad row takes 16 times as many bytes in a block as in the file, so the worker waits for
		// the reader before it has read half of them.
		return []byte(good + strings.Repeat("x\n", 500_000) + good)
	}
	path := write(t, t.TempDir(), "a.csv", text("0"))
	o := testOptions(adSchema(), path)
	o.ChunkBytes = 1 << 20
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	changed, ones := false, 0
	for {
		p, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			t.Fatalf("%d rows are of the new file, and there is no error", ones)
		}
		if err != nil {
			if !errors.Is(err, source.ErrChanged) {
				t.Errorf("the error is %v, want %v", err, source.ErrChanged)
			}
			break
		}
		if !changed {
			changed = true
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(text("1")); err != nil || f.Close() != nil {
				t.Fatal("write", err)
			}
			if later := time.Now().Add(time.Second); os.Chtimes(path, later, later) != nil {
				t.Fatal("chtimes")
			}
		}
		for i := range p.Batches {
			for _, y := range p.Batches[i].Labels {
				ones += int(y)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
