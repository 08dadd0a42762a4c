package main

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"aibox/sparsetable"
)

// store is what is measured. One goroutine calls Push, and Pull may run at the same time
// for another mini-batch; nothing else runs while any other method runs.
type store interface {
	// Load puts n rows into an empty store; row fills one and returns its key.
	Load(ctx context.Context, n int, row func(i int, row []float32) (key uint64)) error
	// Pull returns the rows of keys, which are unique, and creates those that
	// the store lacks with initRow. They are valid until two more Pulls.
	Pull(ctx context.Context, keys []uint64) (rows, error)
	// Push writes the updated rows back.
	Push(ctx context.Context, keys []uint64, r rows) error
	// Save makes all rows durable for the next Open.
	Save(ctx context.Context) error
	// Counters returns counters since the store was opened.
	Counters() counters
	Close() error
}

// announcer is a store that uses announcements of what will be pulled.
type announcer interface {
	Announce(keys []uint64)
	// Lookahead is how many mini-batches of that many keys, beyond the next one, should
	// be announced.
	Lookahead(keys int) int
}

// snapshotter is a store that can make everything durable while it is in use.
type snapshotter interface {
	// Snapshot starts to save the rows as they are now; they may then change. It waits
	// for the snapshot before.
	Snapshot(ctx context.Context) error
	// Snapshotting says that one is still being written.
	Snapshotting() bool
}

// counters are what a store counts itself.
type counters struct {
	// DeviceReads counts the device reads of Pulls. -1 means that the store does not
	// count them; then the process's read calls are counted instead.
	DeviceReads int64
	Own         map[string]any // whatever else the store counts
}

// openOptions are the options that every driver gets.
type openOptions struct {
	Dir         string
	Layout      sparsetable.Layout
	BudgetBytes int64
	Policy      string // of sparsetable's cache
	Getters     int
	Keys        int  // that the store will hold
	Full        bool // every key that is pulled has been loaded
	Loading     bool // the next phase does not need what is in memory at the end
}

// driver opens a kind of store.
type driver struct {
	name  string
	about string // how it was set up, for the head of the report
	open  func(ctx context.Context, o openOptions) (store, error)
	// inMemory says that the store has no budget and no restart: p2 follows the load in
	// the same process, and there is no p3.
	inMemory bool
	// listens says that the store is an announcer.
	listens bool
	// copies says that Pull returns copies of rows, so that a mini-batch pulled ahead
	// lacks the updates of the one in training.
	copies bool
	// restoresHot says that a restarted store restores its hot set, so that it has a p3.
	restoresHot bool
	// blocking says that each read blocks a thread, so that GOMAXPROCS has to be the
	// number of reads in flight.
	blocking bool
	// snapshots says that the store is a snapshotter.
	snapshots bool
	// shared says that several goroutines may Pull and Push different keys.
	shared bool
	// policies says that the store's cache has the policies of package sparsetable.
	policies bool
	// command is set for stores of other programs, which have no open.
	command []string
}

// errUnavailable is wrapped by errors of drivers that this build or this machine does not
// have. The run does not fail because of it.
var errUnavailable = errors.New("not available")

func drivers() []driver {
	return []driver{memoryDriver, ssdDriver, pebbleDriver, rocksDriver}
}

func driverNames() []string {
	var names []string
	for _, d := range drivers() {
		names = append(names, d.name)
	}
	return names
}

func driverNamed(name string) driver {
	all := drivers()
	return all[slices.IndexFunc(all, func(d driver) bool { return d.name == name })]
}

// keyBytes is the size of a key in every store.
const keyBytes = 8

// sortedKeys has the keys of a mini-batch in ascending order, which is best for ordered
// stores: neighbouring keys share blocks.
type sortedKeys struct {
	order []keyAt
	bytes []byte // big-endian, so that they have the order of the numbers
	at    []uint32
}

type keyAt struct {
	key uint64
	at  uint32 // its position in the mini-batch
}

func (s *sortedKeys) set(keys []uint64) {
	s.order, s.bytes, s.at = s.order[:0], s.bytes[:0], s.at[:0]
	for i, k := range keys {
		s.order = append(s.order, keyAt{k, uint32(i)})
	}
	slices.SortFunc(s.order, func(a, b keyAt) int {
		if a.key < b.key {
			return -1
		}
		return 1 // keys are unique
	})
	for _, k := range s.order {
		s.bytes = binary.BigEndian.AppendUint64(s.bytes, k.key)
		s.at = append(s.at, k.at)
	}
}
