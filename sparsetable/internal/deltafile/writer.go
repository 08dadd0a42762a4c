package deltafile

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/offheap"
)

// Writer writes the blocks of a delta file in order, on a goroutine of its
// own, so that whoever fills one waits for the device only when all of them are
// full.
type Writer struct {
	store *Store
	file  blockio.File
	pool  [][]byte // blocks of the pool of blocks
	extra []byte   // memory of the other blocks, or nil

	free   chan []byte // has room for all blocks, as full has
	full   chan blockWrite
	failed atomic.Pointer[error]
	done   sync.WaitGroup
}

// blockWrite is a block to be written, up to bytes.
type blockWrite struct {
	block []byte
	bytes int
	at    int64
}

// NewWriter takes blocks from the pool and starts the goroutine; Wait ends it.
// extra is the number of further blocks, whose memory the caller has reserved in
// the budget.
func (s *Store) NewWriter(f blockio.File, extra int) (w *Writer, err error) {
	size := s.BlockBytes()
	w = &Writer{
		store: s, file: f, free: make(chan []byte, PoolBlocks+extra), full: make(chan blockWrite, PoolBlocks+extra),
	}
	for range PoolBlocks {
		b, err := s.Blocks.Get(size)
		if err != nil {
			return nil, errors.Join(err, w.GiveBack())
		}
		w.pool = append(w.pool, b)
		w.free <- b
	}
	if extra > 0 {
		if w.extra, err = offheap.Map(extra * size); err != nil {
			return nil, errors.Join(err, w.GiveBack())
		}
		clear(w.extra) // the system then allocates the pages now and not under locks
		for at := 0; at < len(w.extra); at += size {
			w.free <- w.extra[at : at+size : at+size]
		}
	}
	w.done.Go(w.run)
	return w, nil
}

func (w *Writer) run() {
	defer panics.Exit("writing the rows of a snapshot")
	for x := range w.full {
		if w.failed.Load() == nil {
			if _, err := w.file.WriteAt(x.block[:x.bytes], x.at); err != nil {
				err = fmt.Errorf("sparsetable: write the rows of a snapshot: %w", err)
				w.failed.Store(&err)
			} else {
				w.store.written.Add(int64(x.bytes))
			}
		}
		w.free <- x.block
	}
}

// Block returns a block to fill. Where none is free, it waits for a write to end.
func (w *Writer) Block() []byte { return <-w.free }

// Write takes a block, of which bytes are to be written at that place. It does
// not wait.
func (w *Writer) Write(block []byte, bytes int, at int64) {
	w.full <- blockWrite{block, bytes, at}
}

// Err is the first error; nothing is written after it.
func (w *Writer) Err() error {
	if p := w.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// Wait returns when all blocks are written. Write must not be called afterwards.
func (w *Writer) Wait() error {
	close(w.full)
	w.done.Wait()
	return w.Err()
}

// GiveBack frees the blocks. REQUIRES: the goroutine has ended.
func (w *Writer) GiveBack() error {
	for _, b := range w.pool {
		w.store.Blocks.Put(b)
	}
	w.pool = nil
	if w.extra == nil {
		return nil
	}
	err := offheap.Unmap(w.extra)
	w.extra = nil
	return err
}
