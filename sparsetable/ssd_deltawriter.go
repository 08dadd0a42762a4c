package sparsetable

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/offheap"
)

// deltaPoolBlocks is how many blocks a snapshot takes from the table's pool of
// blocks, and how many a restore may take: one that is being filled or used, and
// one that is being written or read.
const deltaPoolBlocks = 2

// deltaExtraShare bounds the further blocks of a snapshot, which are for the rows
// that are pinned when it is fixed: they take at most one part in deltaExtraShare
// of the budget.
const deltaExtraShare = 32

// deltaWriter writes the blocks of a delta file in order, on a goroutine of its
// own, so that whoever fills one waits for the device only when all of them are
// full.
type deltaWriter struct {
	t     *ssd
	file  blockio.File
	pool  [][]byte // blocks of the table's pool of blocks
	extra []byte   // memory of the other blocks, or nil

	free   chan []byte // has room for all blocks, as full has
	full   chan deltaWrite
	failed atomic.Pointer[error]
	done   sync.WaitGroup
}

// deltaWrite is a block to be written, up to bytes.
type deltaWrite struct {
	block []byte
	bytes int
	at    int64
}

// newDeltaWriter takes blocks from the pool and starts the goroutine; wait ends it.
// extra is the number of further blocks, whose memory the caller has reserved in
// the budget.
func (t *ssd) newDeltaWriter(f blockio.File, extra int) (w *deltaWriter, err error) {
	size := deltaBlockBytes(t.layout)
	w = &deltaWriter{
		t: t, file: f, free: make(chan []byte, deltaPoolBlocks+extra), full: make(chan deltaWrite, deltaPoolBlocks+extra),
	}
	for range deltaPoolBlocks {
		b, err := t.deltaPool.Get(size)
		if err != nil {
			return nil, errors.Join(err, w.giveBack())
		}
		w.pool = append(w.pool, b)
		w.free <- b
	}
	if extra > 0 {
		if w.extra, err = offheap.Map(extra * size); err != nil {
			return nil, errors.Join(err, w.giveBack())
		}
		clear(w.extra) // the system then allocates the pages now and not under locks
		for at := 0; at < len(w.extra); at += size {
			w.free <- w.extra[at : at+size : at+size]
		}
	}
	w.done.Go(w.run)
	return w, nil
}

func (w *deltaWriter) run() {
	defer panics.Exit("writing the rows of a snapshot")
	for x := range w.full {
		if w.failed.Load() == nil {
			if _, err := w.file.WriteAt(x.block[:x.bytes], x.at); err != nil {
				err = fmt.Errorf("sparsetable: write the rows of a snapshot: %w", err)
				w.failed.Store(&err)
			} else {
				w.t.written.deltas.Add(int64(x.bytes))
			}
		}
		w.free <- x.block
	}
}

// block returns a block to fill. Where none is free, it waits for a write to end.
func (w *deltaWriter) block() []byte { return <-w.free }

// write takes a block, of which bytes are to be written at that place. It does
// not wait.
func (w *deltaWriter) write(block []byte, bytes int, at int64) {
	w.full <- deltaWrite{block, bytes, at}
}

// err is the first error; nothing is written after it.
func (w *deltaWriter) err() error {
	if p := w.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// wait returns when all blocks are written. write must not be called afterwards.
func (w *deltaWriter) wait() error {
	close(w.full)
	w.done.Wait()
	return w.err()
}

// giveBack frees the blocks. REQUIRES: the goroutine has ended.
func (w *deltaWriter) giveBack() error {
	for _, b := range w.pool {
		w.t.deltaPool.Put(b)
	}
	w.pool = nil
	if w.extra == nil {
		return nil
	}
	err := offheap.Unmap(w.extra)
	w.extra = nil
	return err
}
