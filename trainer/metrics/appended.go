package metrics

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// appendedFile is a file to which several goroutines may append, each with one write at a time.
type appendedFile struct {
	mu sync.Mutex
	f  *os.File
}

// Size returns the length of the file up to the end of the last write.
func (a *appendedFile) Size() (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.Seek(0, io.SeekCurrent)
}

// Sync makes what was written durable. A device such as /dev/null has nothing to sync.
func (a *appendedFile) Sync() error {
	if err := a.f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Close makes what was written durable and closes the file.
func (a *appendedFile) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := errors.Join(a.Sync(), a.f.Close()); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
