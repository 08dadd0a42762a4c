package metrics

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestTwoWriters checks that two runs that append to one file do not overwrite each other's lines.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	var writers [2]*JSONLWriter
	for i := range writers {
		w, err := CreateJSONL(path)
		if err != nil {
			t.Fatal(err)
		}
		writers[i] = w
	}
	for range 3 {
		for i, w := range writers {
			if err := w.Write(map[string]int{"writer": i}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.Repeat([]byte("{\"writer\":0}\n{\"writer\":1}\n"), 3); !bytes.Equal(got, want) {
		t.Errorf("the file has %q, want %q", got, want)
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
