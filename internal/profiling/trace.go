package profiling

import (
	"errors"
	"log/slog"
	"os"
	"runtime/trace"
	"sync"
	"time"

	"aibox/internal/panics"
)

// traceFile is an execution trace that ends when its file is full. Otherwise, a job of several
// hours would fill the disk: a trace grows by some megabytes a second.
type traceFile struct {
	file  *os.File
	limit int64
	log   *slog.Logger

	size int64      // written by the runtime's goroutine alone
	full chan error // has an element once no more is to be written: nil, or what writing failed with
	quit chan struct{}
	wait sync.WaitGroup
	err  error // of writing; valid after wait
}

// startTrace begins a trace of about limit bytes in f.
func startTrace(f *os.File, limit int64, log *slog.Logger) (*traceFile, error) {
	t := &traceFile{file: f, limit: limit, log: log, full: make(chan error, 1), quit: make(chan struct{})}
	began := time.Now()
	if err := trace.Start(t); err != nil {
		return nil, errors.Join(err, discard(f))
	}
	t.wait.Go(func() {
		defer panics.Exit("the execution trace")
		select {
		case t.err = <-t.full:
			trace.Stop() // a Write cannot do it, since Stop waits for Write
			t.log.Info("the execution trace is full and ends here; the profiles go on",
				"file", f.Name(), "bytes", t.size, "seconds", time.Since(began).Round(time.Second).Seconds())
		case <-t.quit:
			trace.Stop()
			select {
			case t.err = <-t.full:
			default:
			}
		}
	})
	return t, nil
}

// Write takes what the runtime has recorded. The runtime ignores its error.
func (t *traceFile) Write(p []byte) (int, error) {
	n, err := t.file.Write(p)
	t.size += int64(n)
	if err != nil || t.size >= t.limit {
		select {
		case t.full <- err:
		default:
		}
	}
	return n, err
}

// stop ends the trace, if it is not full already, and closes its file.
func (t *traceFile) stop() error {
	close(t.quit)
	t.wait.Wait()
	return errors.Join(t.err, t.file.Close())
}
