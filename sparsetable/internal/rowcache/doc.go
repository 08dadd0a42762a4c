// Package rowcache holds rows in memory under a hard budget: the bi-level cache
// of AIBox (§4.2), made for passes that pull tens of thousands of unique keys at
// once.
//
// # Rows
//
// A row is Options.Words 32-bit words in a slab outside the garbage collector's
// heap, named by a 32-bit reference, slab number and row within it. It does not
// move while a pass has it pinned; reference 0 is the shared zero row. That is
// what a working set needs to find rows by a shift and a mask (Slabs).
//
//	slab        ┌──────────────────────────────┬──────────────────────────────┐
//	            │ 2^shift metas of 16 bytes    │ 2^shift rows of 4·Words bytes│
//	            └──────────────────────────────┴──────────────────────────────┘
//	meta        key 8 · next row of the chain 4 · state 4 (state.go)
//	directory   one 4-byte head per chain, one chain per row (directory.go)
//
// So a row costs 20 bytes beside its words, lists of the policy included: there
// are none. A budget holds budget / (4·Words + 20) rows, less 1 % for slabs that
// would not fit any more, and less what announced passes take.
//
// The directory is a linear hash table over the low bits of the key's hash, as
// the slots of the SSD index are: the rows of a slot (the paper's level 1) are
// all in the few chains (its level 2) whose numbers end in the slot's bits, and
// ForEachOfSlot walks just these. It grows by one chain per row inserted; there
// is never a rehash.
//
// # Life of a row
//
//	        Insert                 Release of the last pin
//	(free) ────────► pinned ◄──────────────────────────────► idle
//	   ▲             the paper's LRU lists    Find    the paper's LFU lists
//	   │                                                      │ Victims
//	   └───────────────────── Drop ◄── taken ◄────────────────┘
//	                       (Keep, or pinned meanwhile: back)
//
// Pinned rows are never victims. Dirty rows are, but Drop leaves them until
// somebody has written them and said so (Change, or what ForEachOfSlot's
// function returns). A taken row may be found, pinned and updated like any
// other: Drop then finds it pinned or dirty and lets it stay. So a writer takes
// victims, copies dirty ones of their slots under ForEachOfSlot and clears Dirty
// in the same step, writes, and drops, without holding anything.
//
// # Policies
//
// Which idle rows leave is decided by the number of times they were pulled:
//
//	lru_lfu    the paper's: uses since the row came into the cache
//	history    uses in the row's whole life: a row brings its count along from
//	           SSD (Insert's used), which makes a sketch of the keys not in
//	           the cache unnecessary; uses halve with long idleness
//	lookahead  history, and rows that announced passes need stay, those needed
//	           soonest the longest (BagPipe §3.2, with the next use in place of
//	           the last, which is what matters when the window does not fit)
//
// None of them keeps lists. The cache counts the idle rows of each rank;
// Victims reads off how high it must go and sweeps the metas in memory order
// (victims.go). Finding and releasing rows then write one cache line each, where
// linked lists write three at random, and a victim costs some 64 metas read in
// sequence.
//
// # The window
//
// The cache keeps what Announce tells it in tables beside the rows (window.go,
// missing.go), which take an eighth of the budget at most. It looks ahead as many
// passes, beyond the one that is pulled next, as Options.LookaheadPasses says. Where
// that is 0, it looks ahead 50 passes, or 100 if it also notes which keys are missing
// and has room for them. It looks ahead fewer passes in each of these cases:
//
//   - The tables for so many passes of so many keys would take more than an eighth
//     of the budget.
//   - The rows that must be in memory at one time do not fit the cache. These are the
//     rows that two or more announced passes need, and, if rows are read ahead, half
//     of the rows that announced passes lack.
//   - The keys that two or more announced passes need do not fit the table.
//
// Lookahead returns that number as it is at present, and Announce takes no note
// of passes beyond (lookahead.go). The tables are made for the first pass, and
// made anew for passes that have a quarter more keys or worse; what they knew is
// then told again by the passes to come. Forget withdraws the passes that were
// announced and do not come.
//
// # What they reach
//
// Hits of unique keys, on the trace of bench/policies (20 million keys, Zipf
// 1.125, 2 x 300 batches of 106,496 lookups, rows of 80 bytes), as a share of
// what is reached by MIN, which sees all the future; "ideal" counts 88 bytes a
// row for everyone, "hard" is a budget of this package with everything in it:
//
//	                        64 MiB          16 MiB
//	                     ideal   hard    ideal   hard
//	MIN                   1               1             (hits: 0.794, 0.661)
//	bound: window 50      .955            .985
//	bound: popularity     .945            .922
//	LFU, all history      .910            .911
//	W-TinyLFU (otter)     .894            .885
//	lru_lfu               .884    .871    .874    .853
//	history               .910    .897    .905    .882
//	lookahead, 2 passes   .911    .899    .909    .885
//	lookahead, 8          .913    .901    .920    .893
//	lookahead, 20         .918    .906    .938    .906
//	lookahead, 50         .930    .916    .971    .914  (29 passes fit the last)
//
// A hard budget is compared with MIN of the ideal number of rows, so that its
// column also shows what metadata and the window cost.
//
// No policy that does not see the future can get further than one that knows
// each key's true probability, and none that sees 50 passes further than one
// that knows the probabilities beyond them: the two bounds. The distance of
// history to its bound is the price of learning probabilities from the few uses
// that a key near the edge of the cache had in 300 batches.
//
// # Concurrency
//
// Every method may be called from any goroutine; one mutex guards everything
// but the words of rows, and is held for at most 1,024 keys or 16,384 metas at
// a time (Lookahead's step to the next pass also reads its table once, 1.5
// bytes per key of all announced passes). The words of a row belong to whoever
// has it pinned; those of idle and taken rows may be read in ForEachOfSlot and
// ForEach. Two goroutines must not insert the same key: pulls come one after
// the other. Find makes rows visible to others before their words are filled,
// but idle only after Release.
//
// References change hands in Shrink, which moves idle rows; who keeps
// references of idle rows (nobody should) must not across it.
package rowcache
