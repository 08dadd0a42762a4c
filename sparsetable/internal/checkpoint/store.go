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

// Table is what snapshots need of the table that they are of.
type Table interface {
	// BlockWrites calls fn while nobody writes a bucket; storedRows is how many rows
	// buckets have.
	BlockWrites(fn func(storedRows int64) error) error
	// BlockReleases calls fn while nobody pins or releases rows. updatable are the
	// references of the rows of each working set that may be updated meanwhile. training
	// says that there are working sets, or passes that were announced.
	BlockReleases(fn func(updatable iter.Seq[[]uint32], training bool) error) error
	// TakeRoom takes as many bytes of memory as size returns if no row has to leave the
	// cache for them, and reports whether that is so. It calls granted, if it is, and size
	// under the lock that guards the division of memory.
	TakeRoom(size func() int64, granted func()) (bool, error)
	// GiveRoom lets the table use memory again that is not needed any more.
	GiveRoom() error
	// PutCounters adds what the table counts over its life to the counters of a snapshot.
	PutCounters(counters map[string]int64)
}

// Stored marks cached rows that are also in the bucket of their slot, perhaps in an older
// version.
const Stored = rowcache.Mark2

// Options say what a Store works on.
type Options struct {
	Table   Table
	Deltas  *deltafile.Store // the Store closes its pool of blocks
	Catalog *catalog.Catalog
	Copies  *catalogcopy.Copies // of the catalog; nil: none
	Cache   *rowcache.Cache
	Index   *slots.Index
	IndexMu *sync.RWMutex // guards Index
	// Trained reports whether a row was ever trained. Others are not saved.
	Trained func(row []float32) bool
	Hash    func(key uint64) uint64 // of the table's keys

	CatalogPath string // for errors
	MemoryBytes int64  // the table's budget
	// HotBytes is how many bytes of clean rows a snapshot saves, see SSDOptions.HotBytes.
	HotBytes int64
	// FullFiles: a directory counts as nearly full when it has less left than FullFiles
	// times the bytes that make compaction urgent. Then no clean rows are saved.
	FullFiles int64
	ReadOnly  bool
	Logger    *slog.Logger
}

// Store has the snapshots of one table.
type Store struct {
	Options
	files *bucketfile.Set // from Open on

	lists deltaLists

	running atomic.Pointer[Dump] // of the snapshot that is being written, or nil
	// While a snapshot is being written, blockBytes is what the blocks of its dump take
	// beyond those of the pool, pageBytes how many bytes the copies of changed pages may
	// take, see AwaitPages, and listBytes what the catalog's lists take at most; otherwise
	// they are 0.
	blockBytes, pageBytes, listBytes atomic.Int64
	pageTaken                        chan struct{} // has room for one token: a page was written, or none is any more

	snapshots, savedEarly atomic.Int64
}

// New makes a Store. Until Open, it only knows what memory a snapshot will need.
func New(o Options) *Store {
	return &Store{Options: o, pageTaken: make(chan struct{}, 1)}
}

// Open notes the bucket files, and the delta files of all snapshots; the table is opened
// with the given one.
func (c *Store) Open(files *bucketfile.Set, opened catalog.Snapshot) error {
	c.files = files
	return c.openLists(opened)
}

// Close frees the Store's memory. No snapshot is being written. From then on no file is deleted, because
// the files belong to whoever opens the table next.
func (c *Store) Close() {
	c.lists.Lock()
	c.lists.closed = true
	c.lists.Unlock()
	c.Deltas.Blocks.Close()
}

// Running is the dump of the snapshot that is being written; nil if there is none.
func (c *Store) Running() *Dump { return c.running.Load() }

// BeforeBucket is called before the bucket of a slot, whose hashes end like the slot's
// number in the bits of mask, is written or changes its place in the index. It saves the
// rows of the slot that the running snapshot has yet to save; no further rows can become
// such, because fixing a snapshot excludes whoever writes buckets. Then it waits until the
// index may be changed. REQUIRES: the caller is the one that writes buckets, and does not
// keep rows from moving.
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
