package bucketfile

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestNumbersWarning: when three quarters of the file numbers are used there is one
// warning, and at their end an error that says what to do.
func TestNumbersWarning(t *testing.T) {
	var log bytes.Buffer
	opts := smallOptions(3)
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	m := newModel(t, 1, 1, opts)
	m.mustOpen()
	d := m.set.dirs[0]
	first := uint32(3*(1<<fileBits)/4 - 2)
	m.set.mu.nextFile = first
	for i := range uint32(4) {
		f, err := m.set.newFile(d)
		must(t, err)
		m.set.unpin(f)
		near := i >= 2
		if got := m.set.FileNumbers().NearEnd(); got != near {
			t.Errorf("after number %d: near the end %v, want %v", first+i, got, near)
		}
		warned := 0
		if near {
			warned = 1
		}
		if n := strings.Count(log.String(), "level=WARN"); n != warned {
			t.Errorf("after number %d: %d warnings, want %d: %s", first+i, n, warned, log.String())
		}
	}
	if !strings.Contains(log.String(), "export the table and import it") {
		t.Errorf("the warning says %q", log.String())
	}
	m.set.mu.nextFile = maxFile + 1
	if _, err := m.set.newFile(d); err == nil || !strings.Contains(err.Error(), "export it and import it") {
		t.Errorf("at the end: %v", err)
	}
	m.close()
}
