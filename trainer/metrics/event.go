package metrics

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// EventWriter writes one TensorBoard event file. Each call of Write or Scalars is one write to the
// operating system, so TensorBoard sees it at once, and a crash leaves at most one torn record,
// which TensorBoard skips.
//
// Several goroutines may use it.
type EventWriter struct {
	appendedFile
	clock func() time.Time
	buf   []byte
}

// CreateEvents creates an event file in dir, which it makes if necessary. The name is
// events.out.tfevents.<seconds since 1970>.<host>, which TensorBoard looks for and orders files by.
// A second file in the same second gets a number at the end.
func CreateEvents(dir string) (*EventWriter, error) { return createEvents(dir, time.Now) }

func createEvents(dir string, clock func() time.Time) (*EventWriter, error) {
	now := clock()
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("metrics: event directory: %w", err)
	}
	name := filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%010d.%s", now.Unix(), host))
	path := name
	for n := 1; ; n++ {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			path = fmt.Sprintf("%s.%d", name, n)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("metrics: event file: %w", err)
		}
		w := &EventWriter{appendedFile: appendedFile{f: f}, clock: clock}
		if err := w.append(func(b []byte) []byte { return appendVersionEvent(b, now) }); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return w, nil
	}
}

// OpenEvents opens an existing event file, truncates it to its first size bytes, and appends to it.
func OpenEvents(path string, size int64) (*EventWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("metrics: event file: %w", err)
	}
	if err := f.Truncate(size); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: event file: %w", err), f.Close())
	}
	if _, err := f.Seek(size, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: event file: %w", err), f.Close())
	}
	return &EventWriter{appendedFile: appendedFile{f: f}, clock: time.Now}, nil
}

// Path returns the path of the file.
func (w *EventWriter) Path() string { return w.f.Name() }

// Scalars records the defined figures of a report for a step, under the names prefix/name.
func (w *EventWriter) Scalars(step int64, prefix string, r Report) error {
	return w.Write(step, r.Scalars(prefix))
}

// Write records figures for a step. Without figures it writes nothing.
func (w *EventWriter) Write(step int64, scalars []Scalar) error {
	if len(scalars) == 0 {
		return nil
	}
	return w.append(func(b []byte) []byte { return appendScalarEvent(b, step, w.clock(), scalars) })
}

// append writes one record. event appends its data.
func (w *EventWriter) append(event func([]byte) []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = appendRecord(w.buf[:0], event)
	if _, err := w.f.Write(w.buf); err != nil {
		return fmt.Errorf("metrics: event file: %w", err)
	}
	return nil
}
