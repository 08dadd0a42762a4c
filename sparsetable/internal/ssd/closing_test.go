package ssd_test

import (
	"errors"
	"testing"
	"time"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDCloseDuringSnapshot checks that a snapshot that is being written when Close begins has the
// same counters over the table's life as without Close.
func TestSSDCloseDuringSnapshot(t *testing.T) {
	r := newRestarted(t, 1, 4000)
	r.open()
	r.grow(20_000)
	if err := r.table.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := tabletest.KeysFrom(0, 1000)
	r.train(keys) // something for the delta file
	want := r.table.Stats()
	written, held := make(chan struct{}, 1), make(chan struct{})
	r.dev.write = func(int64) error {
		select {
		case written <- struct{}{}:
		default:
		}
		<-held
		return nil
	}
	pending, err := r.table.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	<-written
	closed := make(chan error, 1)
	go func() { closed <- r.table.Close() }()
	tabletest.UntilClosed(t, r.table)
	close(held)
	if _, err := pending.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	r.open()
	d, err := sparsetable.DetailsOf(t.Context(), r.table)
	if err != nil {
		t.Fatal(err)
	}
	if l := d.Lifetime; l.Pulls < want.Pulls || want.FlushedRows == 0 || l.FlushedRows < want.FlushedRows || l.FlushedBytes < want.FlushedBytes || l.Splits < want.Splits {
		t.Errorf("over its life, the table has flushed %d rows, %d bytes, in %d splits; before the snapshot they were %d, %d, %d", l.FlushedRows, l.FlushedBytes, l.Splits, want.FlushedRows, want.FlushedBytes, want.Splits)
	}
	r.close()
}

// TestSSDRefillClosed checks that Close waits for a Refill, that this Refill fails, and that no
// other one can begin afterwards.
func TestSSDRefillClosed(t *testing.T) {
	r := newRestarted(t, 1, 4000)
	r.open()
	r.grow(20_000)
	settle(t, r.table)
	r.snapshot()
	r.close()
	for _, name := range must(r.dev.List())(t) {
		if sparsetable.HasRows(name) && !isDelta(name) {
			if err := r.dev.Remove(name); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	r.opts.SSD.AllowLost = true
	r.open()
	handler := r.table.(sparsetable.LossHandler)
	if handler.Lost() == nil {
		t.Fatal("nothing is lost")
	}
	src := tabletest.NewHeldSource()
	refilled, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := handler.Refill(t.Context(), src)
		refilled <- err
	}()
	<-src.Begun
	go func() { closed <- r.table.Close() }()
	tabletest.UntilClosed(t, r.table)
	select {
	case err := <-closed:
		t.Errorf("Close has not waited for Refill: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(src.End)
	if err := <-refilled; err != nil {
		t.Errorf("a Refill without rows: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := handler.Refill(t.Context(), mapSource(nil)); !errors.Is(err, sparsetable.ErrClosed) {
		t.Errorf("Refill after Close: %v", err)
	}
}

// TestSSDDroppedWhileWritten checks a snapshot that is dropped as soon as the table lists it. It
// counts as taken all the same, and the space of its files is freed only once.
func TestSSDDroppedWhileWritten(t *testing.T) {
	r := newRestarted(t, 1, 4000)
	r.open()
	keys := tabletest.KeysFrom(0, 1000)
	r.train(keys)
	first := tabletest.Commit(t, r.table, nil)
	if err := r.table.DropSnapshot(first.ID); err != nil {
		t.Fatal(err)
	}
	r.train(keys)
	var dropped error
	r.dev.remove = func() { // the second snapshot is committed, and does not need the file of the first one
		r.dev.remove = nil
		all, err := r.table.Snapshots()
		if err == nil && len(all) == 1 {
			err = r.table.DropSnapshot(all[0].ID)
		}
		dropped = errors.Join(err, dropped)
	}
	second := tabletest.Commit(t, r.table, nil)
	if r.dev.remove != nil || dropped != nil {
		t.Fatalf("dropping the second: %v", dropped)
	}
	delta := ssd.DeltaBytes(r.table, int64(len(keys)))
	if second.ID != first.ID+1 || second.Rows != first.Rows || second.Bytes < delta {
		t.Errorf("the second snapshot is %+v, the first was %+v", second, first)
	}
	r.train(keys)
	tabletest.Commit(t, r.table, nil) // deletes the file of the second one
	if st := r.table.Stats(); st.DiskBytes != delta {
		t.Errorf("with the rows of a snapshot, %d bytes, the table takes %d", delta, st.DiskBytes)
	}
	r.close()
}
