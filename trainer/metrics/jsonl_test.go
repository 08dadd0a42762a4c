package metrics

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/score"
)

func TestJSONLWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	type line struct {
		Step int   `json:"step"`
		AUC  Value `json:"auc"`
	}
	long := strings.Repeat("x", 10_000)
	for i, c := range []struct {
		before string // what a crash left at the end of the file
		write  line
		want   string
	}{
		{"", line{1, 0.5}, "{\"step\":1,\"auc\":0.5}\n"},
		{"", line{2, score.Undefined()}, "{\"step\":1,\"auc\":0.5}\n{\"step\":2,\"auc\":null}\n"},
		{`{"step":3,"au`, line{3, 1}, "{\"step\":1,\"auc\":0.5}\n{\"step\":2,\"auc\":null}\n{\"step\":3,\"auc\":1}\n"},
		{long, line{4, 1}, "{\"step\":1,\"auc\":0.5}\n{\"step\":2,\"auc\":null}\n{\"step\":3,\"auc\":1}\n{\"step\":4,\"auc\":1}\n"},
	} {
		if c.before != "" {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(c.before); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		w, err := CreateJSONL(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(c.write); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path) // visible before Close
		if err != nil || string(got) != c.want {
			t.Errorf("%d: file holds %q, want %q (%v)", i, got, c.want, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJSONLWriterToDevice checks that metrics can be written to /dev/null, which users name who
// want none, although it cannot be synced.
func TestJSONLWriterToDevice(t *testing.T) {
	w, err := CreateJSONL(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(1), w.Close()); err != nil {
		t.Error(err)
	}
}

// TestJSONLWriterMakesDirectory: the file may be in a directory that does not exist, as where a date is
// in its path.
func TestJSONLWriterMakesDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "2026-11-20", "log", "metrics.jsonl")
	w, err := CreateJSONL(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(1), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); string(got) != "1\n" {
		t.Errorf("file holds %q, %v", got, err)
	}
}

func TestJSONLWriterTornFirstLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	if err := os.WriteFile(path, []byte(strings.Repeat("y", 9000)), 0o666); err != nil {
		t.Fatal(err)
	}
	w, err := CreateJSONL(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(1); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(math.NaN()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a bare NaN: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "1\n" {
		t.Errorf("file holds %q", got)
	}
	if _, err := CreateJSONL(filepath.Join(path, "x")); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no error that names the path: %v", err)
	}
}
