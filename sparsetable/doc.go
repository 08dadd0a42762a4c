// Package sparsetable keeps the rows of an embedding table, hundreds of
// millions of them, under 64-bit keys (AIBox §4).
//
// A caller pulls the rows of a pass, which pins them in memory, updates them
// in place, mini-batch after mini-batch, and releases them. A row is created when
// its key is first pulled. Its initial words depend on the key alone, so the order
// in which rows are created has no effect on them. Open returns a Table;
// Options.Kind says how the rows are kept:
//
//	"memory"   All rows are in memory. It is meant for tables that fit, and it is
//	           the reference that tests compare the other kind with.
//	"ssd"      Rows are on SSDs. Those that are in use, and those that are likely
//	           to be used next, are also in memory, within a hard budget.
//
// Both give the same rows, bit for bit, whatever the budget and the timing.
// Package tabletest holds the suite that all kinds must pass. Their files
// differ; KindIn tells which kind a directory holds.
//
// # Which kind
//
// Kind "memory" needs memory for all rows, and each of its snapshots is one file with all of
// them. Kind "ssd" needs memory for the rows that are pinned at a time, and for a few bits a
// key; what it has beyond that makes it faster. Its snapshots write only what has changed.
// Only tables of this kind can be cloned and compacted (Clone, Compact), and can go on
// without a lost directory (LossHandler). more.go has the interfaces that not all tables implement.
//
// How a kind works, and what it cannot do, is in the documentation of its package:
// internal/memory and internal/ssd.
//
// # Rows
//
// Layout is the shape of a table's rows: values, optimizer state, statistics
// (internal/layout). Values are float32, or 16 bits wide (Layout.Format) and then packed
// two to a word, so that the cache, bucket files and snapshots spend half the bytes
// on them. Only code that reads or writes values knows their format; all other code
// handles words. Training loads values as float32 (LoadValues), updates them and
// stores them (StoreValues) with stochastic rounding: a value is rounded up or down
// at random, so that the mean is exact. Rounding to nearest would lose every update
// that is smaller than half the distance between two neighbouring values of the
// format. The random bits are a function of seed, update, key and position, never of
// what was in memory. State and statistics are always 32 bits wide. Both kinds
// record the layout and refuse to be opened with another (*LayoutError). The kinds
// give the same rows in every format.
//
// # Concurrency
//
// Every method of a Table may be called from any goroutine. What rows hold is
// guarded by the caller: one trainer updates pinned rows, while Pull for later
// passes, Snapshot and Release run concurrently. The calls that may create
// or remove rows (Pull, Import, Expire) exclude one another, and a Snapshot waits for
// the one before it.
package sparsetable
