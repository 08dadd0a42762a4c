package checkpoint

import (
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// Table is a snapshot's view of its table.
type Table interface {
	// BlockWrites calls fn while nobody writes a bucket; storedRows is the number of rows in
	// buckets.
	BlockWrites(fn func(storedRows int64) error) error
	// BlockReleases calls fn while nobody pins or releases rows. updatable yields the references of
	// each working set whose rows may be updated meanwhile. training says that there are working
	// sets or announced passes.
	BlockReleases(fn func(updatable iter.Seq[[]uint32], training bool) error) error
	// TakeMemory takes as many bytes of memory as size returns, if no row has to leave the cache for
	// them, and reports whether it did. It calls size and, on success, granted under the lock that
	// guards the division of memory.
	TakeMemory(size func() int64, granted func()) (bool, error)
	// ReleaseMemory lets the table reuse memory that is no longer needed.
	ReleaseMemory() error
	// PutCounters adds the table's lifetime counters to the counters of a snapshot.
	PutCounters(counters map[string]int64)
}

// Stored marks cached rows that are also in the bucket of their slot, perhaps in an older version.
const Stored = rowcache.Mark2

// Options say what a Store works on.
type Options struct {
	Table   Table
	Deltas  *deltafile.Store // the Store closes its Blocks
	Catalog *catalog.Catalog
	Copies  *catalogcopy.Copies // of the catalog; nil: none
	Cache   *rowcache.Cache
	Index   *slots.Index
	IndexMu *sync.RWMutex // guards Index
	// Trained reports whether a row was ever trained. Only such rows are saved.
	Trained func(row []float32) bool
	Hash    func(key uint64) uint64 // of the table's keys

	CatalogPath string // for errors
	MemoryBytes int64  // the table's budget
	// HotBytes bounds the bytes of clean rows in a snapshot, see SSDOptions.HotBytes.
	HotBytes int64
	// A directory counts as nearly full when its remaining space is less than FullFiles times the
	// bytes that make compaction urgent. Then no clean rows are saved.
	FullFiles int64
	ReadOnly  bool
	Logger    *slog.Logger
}

// Store manages the snapshots of one table.
type Store struct {
	Options
	files *bucketfile.Set // set by Open

	lists deltaLists

	running atomic.Pointer[Dump] // dump of the snapshot that is being written, or nil
	// While a snapshot is being written, blockBytes is the size of the blocks of its dump beyond
	// those of the pool, pageBytes the limit for the copies of changed pages (see AwaitPages), and
	// listBytes the most that the catalog's lists take. Otherwise they are 0.
	blockBytes, pageBytes, listBytes atomic.Int64
	pageTaken                        chan struct{} // has room for one token: a page was written, or no more will be

	snapshots, savedEarly atomic.Int64
}

// New makes a Store. Until Open, it only knows how much memory a snapshot will need.
func New(o Options) *Store {
	return &Store{Options: o, pageTaken: make(chan struct{}, 1)}
}

// Open sets the bucket files, and records the delta files of all snapshots; opened is the snapshot
// that the table is opened with.
func (c *Store) Open(files *bucketfile.Set, opened catalog.Snapshot) error {
	c.files = files
	return c.openLists(opened)
}

// Close frees the Store's memory. No snapshot may be in progress. From then on no file is deleted,
// because the files belong to the next opener of the table.
func (c *Store) Close() {
	c.keepFiles()
	c.Deltas.Blocks.Close()
}

// keepFiles makes sure that no file is deleted from now on.
func (c *Store) keepFiles() {
	c.lists.Lock()
	c.lists.closed = true
	c.lists.Unlock()
}

// Running returns the dump of the snapshot that is being written, or nil if there is none.
func (c *Store) Running() *Dump { return c.running.Load() }

// BeforeBucket is called before the bucket of a slot is written or changes its place in the index;
// the hashes of the slot's rows end like the slot's number in the bits of mask. It saves the rows
// of the slot that the running snapshot has yet to save; no further such rows can appear, because
// fixing a snapshot excludes writers of buckets. Then it waits until the index may be changed.
// REQUIRES: the caller is the one that writes buckets, and does not hold the lock that keeps rows
// from moving.
func (c *Store) BeforeBucket(slot uint32, mask uint64) {
	c.Running().saveSlot(slot, mask)
	c.AwaitPages()
}

// Counts are counters since the table was opened.
type Counts struct {
	Snapshots    int64 // committed
	SavedEarly   int64 // rows that were saved because they were about to change or leave the cache
	WrittenBytes int64 // of delta files
}

// Counts returns the counters.
func (c *Store) Counts() Counts {
	return Counts{c.snapshots.Load(), c.savedEarly.Load(), c.Deltas.WrittenBytes()}
}
