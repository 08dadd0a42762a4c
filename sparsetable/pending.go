package sparsetable

// PendingSnapshot is a snapshot whose state is fixed and which is being
// written.
type PendingSnapshot struct {
	done chan struct{} // closed when info and err are final
	info SnapshotInfo
	err  error
}

// Wait returns when the snapshot is durable, or has failed: then it is not there,
// or, after a directory could not be synced or with ErrFailed, may be there the next
// time that the table is opened.
// It may be called any number of times, from any goroutine.
func (p *PendingSnapshot) Wait() (SnapshotInfo, error) {
	<-p.done
	return p.info, p.err
}

// Done is closed when Wait would return at once.
func (p *PendingSnapshot) Done() <-chan struct{} { return p.done }
