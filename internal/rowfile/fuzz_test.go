package rowfile

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"aibox/sparsetable"
)

// FuzzReader: whatever a file holds, reading it ends, with rows of the layout or
// an error that names the file.
func FuzzReader(f *testing.F) {
	f.Add(writeRows(f, sparsetable.Layout{ValueDim: 2, StateDim: 1}, 3, 1))
	f.Add(writeRows(f, sparsetable.Layout{ValueDim: 3, Format: sparsetable.BFloat16}, 2, 2))
	f.Add(writeRows(f, sparsetable.Layout{ValueDim: 1}, 0, 3))
	f.Add([]byte("PAR1PAR1"))
	f.Add([]byte("PAR1\x15\x04\x19\xcc\x48\x06recPAR1")) // a footer of 1.6 GB
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
		for rows := 0; err == nil; rows++ {
			if rows > 1<<16 {
				return
			}
			var row []float32
			if _, row, err = r.Next(); err == nil && len(row) != r.Layout().Words() {
				t.Fatalf("a row of %d words, the layout is %+v", len(row), r.Layout())
			}
		}
		if err != io.EOF && !errors.As(err, new(*FormatError)) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
