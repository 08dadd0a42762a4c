package contract

import "aibox/sparsetable/internal/layout"

// SnapshotInfo describes a committed snapshot.
type SnapshotInfo struct {
	ID     uint64
	Rows   int64
	Bytes  int64 // on disk, for this snapshot alone
	Layout layout.Layout
	Record []byte // the caller's own bytes
}

// PendingSnapshot is a snapshot whose state is fixed and which is being
// written.
type PendingSnapshot struct {
	done chan struct{} // closed when info and err are final
	info SnapshotInfo
	err  error
}

// Wait returns when the snapshot is durable or has failed. A snapshot that failed does not exist,
// with two exceptions: after ErrFailed, and after a directory could not be synced, it may exist
// when the table is opened again. Wait may be called any number of times, from any goroutine.
func (p *PendingSnapshot) Wait() (SnapshotInfo, error) {
	<-p.done
	return p.info, p.err
}

// Done returns a channel that is closed once Wait returns immediately.
func (p *PendingSnapshot) Done() <-chan struct{} { return p.done }

// NewPendingSnapshot returns a snapshot that is being written. end must be called once, when it is
// durable or has failed.
func NewPendingSnapshot() (p *PendingSnapshot, end func(SnapshotInfo, error)) {
	p = &PendingSnapshot{done: make(chan struct{})}
	return p, func(info SnapshotInfo, err error) {
		p.info, p.err = info, err
		close(p.done)
	}
}
