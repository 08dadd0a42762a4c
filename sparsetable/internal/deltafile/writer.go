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

// Buffers are the blocks from which the files of one snapshot are written.
type Buffers struct {
	store *Store
	pool  [][]byte    // blocks from Store.Blocks
	extra []byte      // memory of the other blocks, or nil
	free  chan []byte // has room for all blocks, like the queue of each Writer
}

// NewBuffers takes PoolBlocks blocks for each file from the pool; extra is the number of further
// blocks, whose memory the caller has reserved in the budget.
func (s *Store) NewBuffers(files, extra int) (b *Buffers, err error) {
	size := s.BlockBytes()
	b = &Buffers{store: s, free: make(chan []byte, PoolBlocks*files+extra)}
	for range PoolBlocks * files {
		x, err := s.Blocks.Get(size)
		if err != nil {
			return nil, errors.Join(err, b.GiveBack())
		}
		b.pool = append(b.pool, x)
		b.free <- x
	}
	if extra > 0 {
		if b.extra, err = offheap.Map(extra * size); err != nil {
			return nil, errors.Join(err, b.GiveBack())
		}
		clear(b.extra) // so that the system allocates the pages now and not under locks
		for at := 0; at < len(b.extra); at += size {
			b.free <- b.extra[at : at+size : at+size]
		}
	}
	return b, nil
}

// Block returns a block to fill. If none is free, it waits for a write to end. So a caller that
// waits may hold at most one block per file.
func (b *Buffers) Block() []byte { return <-b.free }

// GiveBack frees the blocks. REQUIRES: no more writes use them.
func (b *Buffers) GiveBack() error {
	for _, x := range b.pool {
		b.store.Blocks.Put(x)
	}
	b.pool = nil
	if b.extra == nil {
		return nil
	}
	err := offheap.Unmap(b.extra)
	b.extra = nil
	return err
}

// Writer writes the blocks of a delta file in order, on its own goroutine, so that the goroutine
// that fills blocks waits for the device only when all of them are full.
type Writer struct {
	buffers *Buffers
	file    blockio.File
	full    chan blockWrite
	failed  atomic.Pointer[error]
	done    sync.WaitGroup
}

// blockWrite is a write of the first bytes bytes of a block.
type blockWrite struct {
	block []byte
	bytes int
	at    int64
}

// NewWriter starts the goroutine that writes blocks of b to a file; Wait stops it.
func (b *Buffers) NewWriter(f blockio.File) *Writer {
	w := &Writer{buffers: b, file: f, full: make(chan blockWrite, cap(b.free))}
	w.done.Go(w.run)
	return w
}

func (w *Writer) run() {
	defer panics.Exit("writing the rows of a snapshot")
	for x := range w.full {
		if w.failed.Load() == nil {
			if _, err := w.file.WriteAt(x.block[:x.bytes], x.at); err != nil {
				err = fmt.Errorf("sparsetable: write the rows of a snapshot: %w", err)
				w.failed.Store(&err)
			} else {
				w.buffers.store.written.Add(int64(x.bytes))
			}
		}
		w.buffers.free <- x.block
	}
}

// Write queues the first bytes bytes of a block for writing at offset at. It does not wait.
func (w *Writer) Write(block []byte, bytes int, at int64) {
	w.full <- blockWrite{block, bytes, at}
}

// Err returns the first error; nothing is written after it.
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
