package blocktest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Kind is a kind of operation.
type Kind int

// Kinds of operations.
const (
	Create Kind = iota
	Open
	Read // by Submit or ReadAt
	Write
	Sync
	Size
	Remove
	List
	SyncDir
	Free
)

var kindNames = [...]string{"create", "open", "read", "write", "sync", "size", "remove", "list", "syncdir", "free"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Op is an operation about to happen.
type Op struct {
	Kind   Kind
	Name   string // of the file
	Offset int64  // of reads and writes
	Bytes  int
}

// Fault says what happens to an operation. The zero value lets it succeed.
type Fault struct {
	// Err fails the operation before it does anything, or, for a write with Partial, after Bytes.
	Err error
	// Partial ends a read or a write after Bytes; writes end after whole units. Without Err, a
	// write silently loses the rest and a read sees the end of the file.
	Partial bool
	Bytes   int
	// FlipBit inverts a random bit of the result of a read.
	FlipBit bool
}

// Inject calls decide before every operation from now on; nil stops that. decide runs under the
// device's lock and must not call the device.
func (d *Device) Inject(decide func(Op) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.inject = decide
}

// FailNth returns a decision for Inject: the n-th operation (from 0) of the given kinds, or of any
// kind if none is given, fails with err. No other operation fails. Failing writes keep a random
// prefix. hit tells whether the operation has failed. All devices that use the decision are counted
// together.
func FailNth(n int, seed uint64, err error, kinds ...Kind) (decide func(Op) Fault, hit *atomic.Bool) {
	hit = new(atomic.Bool)
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	var mu sync.Mutex
	count := 0
	return func(op Op) Fault {
		mu.Lock()
		defer mu.Unlock()
		match := len(kinds) == 0
		for _, k := range kinds {
			match = match || k == op.Kind
		}
		if !match {
			return Fault{}
		}
		if count++; count != n+1 {
			return Fault{}
		}
		hit.Store(true)
		if op.Kind == Write {
			return Fault{Err: err, Partial: true, Bytes: rng.IntN(op.Bytes + 1)}
		}
		return Fault{Err: err}
	}, hit
}

// SetCapacity changes the device's capacity in bytes; 0: no limit.
func (d *Device) SetCapacity(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.capacity = bytes
}

// Bytes returns a copy of a file's contents, nil if there is no such file.
func (d *Device) Bytes(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.mu.names[name]; n != nil {
		return append([]byte{}, n.data...)
	}
	return nil
}

// SetBytes makes or changes a file, durably.
func (d *Device) SetBytes(name string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.mu.names[name]
	if n == nil {
		n = &inode{dirty: map[int64]bool{}}
		d.mu.names[name], d.mu.durable[name] = n, n
	}
	n.data = append([]byte{}, data...)
	n.durable = append([]byte{}, data...)
	clear(n.dirty)
}
