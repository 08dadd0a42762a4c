package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// JSONLWriter appends JSON objects to a file, one per line, each with one write to the operating
// system. A crash of the process loses no line. A crash of the machine loses at most the last
// lines, and may leave a truncated last line, which is removed when the file is opened again.
//
// Several goroutines may use it.
type JSONLWriter struct{ appendedFile }

// CreateJSONL creates path and its directory, or opens an existing file to append to it. Other processes
// may append to it, too.
func CreateJSONL(path string) (*JSONLWriter, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := seekPastLastLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: opening %s for appending: %w", path, err), f.Close())
	}
	return &JSONLWriter{appendedFile{f: f}}, nil
}

// seekPastLastLine seeks to the end of the last complete line of f and truncates the file there.
func seekPastLastLine(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	end := size
	buf := make([]byte, 4096)
	for end > 0 {
		n := min(int64(len(buf)), end)
		if _, err := f.ReadAt(buf[:n], end-n); err != nil {
			return err
		}
		if at := bytes.LastIndexByte(buf[:n], '\n'); at >= 0 {
			end += int64(at+1) - n
			break
		}
		end -= n
	}
	if end < size {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	_, err = f.Seek(end, io.SeekStart)
	return err
}

// Write appends v, which must marshal to JSON. A NaN or infinite float64 does not; as a Value it
// does.
func (w *JSONLWriter) Write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("metrics: line for %s: %w", w.f.Name(), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
