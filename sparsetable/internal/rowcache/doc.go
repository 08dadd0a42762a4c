// Package rowcache holds rows in memory under a hard budget: the bi-level cache
// of AIBox (§4.2), made for passes that pull tens of thousands of unique keys at
// once.
//
// # Rows
//
// A row consists of Options.Words 32-bit words. Rows lie in slabs, which are
// blocks of memory outside the garbage collector's heap. A 32-bit reference names
// a row by the number of its slab and its place within the slab; reference 0 is a
// row of zeros that all users share. A row does not move while a pass has it
// pinned, so that a working set finds its rows by a shift and a mask (see Slabs).
//
//	slab        ┌──────────────────────────────┬──────────────────────────────┐
//	            │ 2^shift metas of 16 bytes    │ 2^shift rows of 4·Words bytes│
//	            └──────────────────────────────┴──────────────────────────────┘
//	meta        key 8 · next row of the chain 4 · state 4 (state.go)
//	directory   one 4-byte head per chain, one chain per row (directory.go)
//
// So a row costs 20 bytes in addition to its words. No policy keeps lists of rows,
// which would cost more. A budget holds budget / (4·Words + 20) rows, less up to
// 1 % because only whole slabs are used, and less the rows whose memory is taken by
// the tables for announced passes (see "The window").
//
// The directory is a linear hash table over the low bits of the key's hash. The
// slots of the SSD index use the same bits: all rows of a slot (the paper's level
// 1) are in the few chains (its level 2) whose numbers end in the slot's bits, and
// ForEachOfSlot walks only these. The directory grows by one chain with every
// inserted row, so that it never has to be rehashed as a whole.
//
// # Life of a row
//
//	        Insert                 Release of the last pin
//	(free) ────────► pinned ◄──────────────────────────────► idle
//	   ▲             the paper's LRU lists    Find    the paper's LFU lists
//	   │                                                      │ Victims
//	   └───────────────────── Drop ◄── taken ◄────────────────┘
//	                       (dirty, or pinned meanwhile: back)
//
// Pinned rows are never victims. Dirty rows may be victims, but Drop keeps a row in
// the cache until somebody has written it to SSD and has cleared its Dirty flag
// (through Change, or through the value that ForEachOfSlot's function returns). A
// taken row may be found, pinned and updated like any other; Drop then finds it
// pinned or dirty and lets it stay. So a writer needs no lock between its steps: it
// takes victims, copies the dirty rows of their slots under ForEachOfSlot and
// clears Dirty in the same step, writes the copies, and drops the victims.
//
// # Policies
//
// The number of times that a row was pulled decides when it leaves the cache:
//
//	lru_lfu    is the paper's policy; it counts uses since the row came into
//	           the cache
//	history    counts uses in the row's whole life. The count is stored with
//	           the row on SSD and is given back to the cache by Insert (used),
//	           so that no sketch of the keys outside the cache is needed. The
//	           count is halved when the row is idle for long
//	lookahead  is history, but rows that announced passes need stay, and those
//	           that are needed soonest stay longest (BagPipe §3.2 goes by the
//	           last use in the window; this policy goes by the next one, which
//	           is what matters when the rows of the window do not fit)
//
// The cache counts how many idle rows there are of each rank. From these counts
// Victims computes the rank below which rows have to leave, and it then reads the
// metas in memory order (victims.go). So finding or releasing a row writes one
// cache line, where linked lists would write three at random places, and finding a
// victim reads about 64 metas in sequence.
//
// # The window
//
// Announce tells the cache which keys a later pass will need. The cache notes them
// in the window: tables that take an eighth of the budget at most (window.go,
// missing.go). Options.LookaheadPasses says how many passes the window looks ahead,
// beyond the pass that is pulled next. If it is 0, the window looks 50 passes
// ahead, or 100 passes if it also notes which keys are missing from the cache and
// has room for that. It looks less far ahead in four cases:
//
//   - The tables for that many passes would take more than an eighth of the budget.
//   - The cache has too few rows to read the missing rows of that many passes ahead. Reading them
//     ahead is worth more than looking farther ahead.
//   - The rows that are wanted in memory at one time do not fit the cache. These are the rows that
//     two or more announced passes need and, if missing rows are read before their pass comes, also
//     those rows, as many rows that have to leave for them, and the rows of three passes.
//   - The table has no room for all the keys that two or more announced passes need.
//
// Lookahead returns the present number of passes, and Announce ignores passes beyond it
// (lookahead.go). The tables are made for the first pass. They are made again when passes have over
// a quarter more keys; the new tables are empty and are filled by the passes that are announced
// from then on. Forget withdraws passes that were announced but will not come.
//
// # What they reach
//
// The table compares hits of unique keys on the trace of bench/policies (20
// million keys, Zipf 1.125, 2 x 300 batches of 106,496 lookups, rows of 80 bytes).
// Each figure is a share of the hits of MIN, Belady's optimal policy, which knows
// the whole future. The columns "ideal" count 88 bytes a row for every policy; the
// columns "hard" are measured with this package, whose budget covers all its memory:
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
// The columns "hard" are also compared with MIN of the ideal number of rows, so
// that they show what metadata and the window cost.
//
// The two bounds are what the best possible policies reach: "popularity" knows the
// true probability of each key but not the future, and "window 50" also knows the
// next 50 passes. The policy history stays below its bound because it has to learn
// the probabilities, and a key near the edge of the cache was used only a few times
// in 300 batches.
//
// # Concurrency
//
// Every method may be called from any goroutine. One mutex guards everything but
// the words of rows, and it is held for at most 1,024 keys or 16,384 metas at a
// time. Find and Release work on all threads (tally.go) and hold it for 8,192 keys
// times the number of threads. With the policy lookahead, the first Find of a pass
// also reads the window's table once, 1.5 bytes per key of all announced passes. The
// words of a row belong to whoever has it pinned; the words of idle and taken rows
// may be read in ForEachOfSlot and VisitFrom. Two goroutines must not insert the same
// key, so pulls come one after the other. Insert makes a row visible to others before
// the caller has filled its words, but the row becomes idle only after Release.
//
// Shrink moves idle rows, so that their references change: a reference of an idle
// row must not be used after Shrink.
package rowcache
