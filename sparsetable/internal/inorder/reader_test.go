package inorder

import (
	"errors"
	"sync"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// table has buckets on a device in memory, whose reads end in any order. Slot n has a bucket with
// one row of key n, unless n is a multiple of 5.
type table struct {
	files *bucketfile.Set
	index *slots.Index
	dev   *blocktest.Device
	mu    sync.RWMutex
}

func newTable(t *testing.T, n uint32) *table {
	tab := &table{dev: blocktest.New(blocktest.Options{Seed: testseed.Rand(t).Uint64()})}
	var err error
	if tab.files, err = bucketfile.Open(t.Context(), bucketfile.State{}, nil, bucketfile.Options{Table: 1, RowWords: 1, Devices: []blockio.Device{tab.dev}}); err != nil {
		t.Fatal(err)
	}
	if tab.index, err = slots.New(slots.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tab.files.Close(), tab.index.Close(), tab.dev.Close()); err != nil {
			t.Error(err)
		}
	})
	for slot := range n {
		if slot > 0 {
			if err := tab.index.Grow(); err != nil {
				t.Fatal(err)
			}
		}
		if slot%5 != 0 {
			tab.write(t, slot)
		}
	}
	if err := tab.files.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tab
}

// write writes the bucket of a slot anew.
func (tab *table) write(t *testing.T, slot uint32) {
	a, err := tab.files.Begin(slot, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	a.Put(uint64(slot), []float32{1})
	loc, err := a.Commit()
	if err != nil {
		t.Fatal(err)
	}
	tab.index.Set(slot, uint64(loc))
}

// upTo yields n slots, the last of them first.
func upTo(n uint32) func() (uint32, bool) {
	return func() (uint32, bool) {
		if n == 0 {
			return 0, false
		}
		n--
		return n, true
	}
}

// The buckets are delivered in the order of the slots, within the limits of the Reader, and a
// bucket that was rewritten meanwhile is recognized.
func TestOrder(t *testing.T) {
	const n, buckets, bytes = 1000, 2 * atOnce, 40 << 10
	tab := newTable(t, n)
	q := tab.files.NewQueue()
	r := New(q, tab.index, &tab.mu, tab.files.Unit(), buckets, bytes)
	next, want := upTo(n), uint32(n)
	moved := false
	for {
		r.Fill(next)
		if r.tail-r.head > buckets || r.bytes > bytes+int64(tab.files.Unit()) {
			t.Fatalf("%d buckets of %d bytes are on their way, want at most %d and %d", r.tail-r.head, r.bytes, buckets, bytes)
		}
		got := r.Wait(1, 7)
		if got == 0 {
			break
		}
		for i := range got {
			want--
			if want == 501 && !moved {
				tab.write(t, want)
				moved = true
			}
			slot, b, ok, err := r.Current(i)
			switch {
			case err != nil:
				t.Fatal(err)
			case slot != want:
				t.Fatalf("the bucket of slot %d comes, want %d", slot, want)
			case ok == (slot == 501):
				t.Fatalf("slot %d has the bucket that was read: %v", slot, ok)
			case ok && (b != nil) != (slot%5 != 0), b != nil && b.Key(0) != uint64(slot):
				t.Fatalf("slot %d has the bucket %v", slot, b)
			}
		}
		r.Advance(got)
	}
	if want != 0 || r.bytes != 0 || q.HeldBytes() != 0 {
		t.Errorf("%d slots have not come, %d bytes are counted, %d held", want, r.bytes, q.HeldBytes())
	}
}

// Wait waits for as many slots as it is asked for, and Drain returns all buffers.
func TestLeastAndDrain(t *testing.T) {
	tab := newTable(t, 60)
	tab.dev.Inject(func(op blocktest.Op) blocktest.Fault {
		if op.Kind == blocktest.Read {
			time.Sleep(100 * time.Microsecond)
		}
		return blocktest.Fault{}
	})
	q := tab.files.NewQueue()
	q.MergeWithin(0, 512) // each bucket comes by itself
	r := New(q, tab.index, &tab.mu, tab.files.Unit(), atOnce, 1<<30)
	r.Fill(upTo(60))
	if n := r.Wait(2, 2); n != 2 {
		t.Errorf("%d slots have their buckets, want 2", n)
	}
	if n := r.Wait(100, 100); n != 60 {
		t.Errorf("%d slots have their buckets, want all 60", n)
	}
	r.Advance(7)
	r.Drain()
	if r.head != r.tail || r.bytes != 0 || q.HeldBytes() != 0 || q.Pending() != 0 {
		t.Errorf("after Drain: %d slots, %d bytes, %d held, %d pending", r.tail-r.head, r.bytes, q.HeldBytes(), q.Pending())
	}
}

// An error of a read affects only its slot.
func TestErrorOfOneBucket(t *testing.T) {
	tab := newTable(t, 10)
	loc := bucketfile.Location(tab.index.Location(3))
	names, err := tab.dev.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if b := tab.dev.Bytes(name); len(b) > 0 {
			b[loc.Offset()*int64(tab.files.Unit())+20] ^= 1
			tab.dev.SetBytes(name, b)
		}
	}
	r := New(tab.files.NewQueue(), tab.index, &tab.mu, tab.files.Unit(), atOnce, 1<<30)
	defer r.Drain()
	r.Fill(upTo(10))
	for i := range r.Wait(10, 10) {
		slot, _, ok, err := r.Current(i)
		if !ok || (slot == 3) != errors.Is(err, bucketfile.ErrCorrupt) {
			t.Errorf("slot %d: ok %v, error %v", slot, ok, err)
		}
	}
}
