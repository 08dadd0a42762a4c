// Package elevator reads the missing rows of announced passes into the cache of a table on
// SSD before their Pull (BagPipe §3.2). It is out of order: a later pass's rows are read
// before an earlier pass is trained. It is bounded by its share of the cache and of the memory for
// carried buckets. It writes nothing, and evicts only clean rows. Rows that it did not reach, or
// failed to read, are read by the Pull.
//
//	Announce(keys) --> list of passes (passes.go), marks of slots (marks.go)
//	                          |
//	          stops: buckets to be read next (stops.go, direct.go)
//	                          |
//	          reads in flight --> rows into the cache, buckets carried (rows.go)
//
// # The elevator
//
// The elevator serves announced passes in the order in which buckets lie on the device, not in that
// of the passes (the out-of-order prefetch of BagPipe §3.2, with the elevator algorithm of disk
// schedulers). It goes through the bucket files from first to last and then starts over, and makes
// one round in as many passes as are announced. So it comes to every bucket that a pass needs
// between the pass's announcement and its Pull. It stops
//
//   - where a bucket has a row that is not in the cache and that an announced
//     pass needs: the row goes into the cache and stays there until its pass;
//   - where dirty rows of a slot are among the first to leave and no announced pass needs them:
//     they are written with the rest of their bucket, which was just read, and with all other
//     dirty rows of the slot that are not pinned.
//
// A Pull that has to read a bucket does the same with its rows, and removes the
// stop.
//
// Stops are marked slots of the index. Stops that are close together are read with one read that
// includes the bytes between them. In a table of 20 million rows, with 100 announced passes of
// 27,600 keys, of which a third are missing, 37 MB are read per pass, in 2,700 reads, and a row
// takes three fifths of the time of a separate read.
//
// # Direct mode
//
// Where stops are far apart, because the table is large compared with the announced passes, going
// through all files does not pay. There, and where the table does not know what all announced
// passes lack, the elevator serves the passes one by one (direct mode): its stops are the buckets
// that the next pass lacks. These are read while the previous pass is still being pulled and
// trained. After the last reads of a Pull, the reads for the next pass are submitted, as many as
// the elevator's memory holds; when no Pull is running, the prefetcher continues with them.
// Otherwise the device would be idle from the last read of a Pull to the first read of the next,
// which is nearly half of the time where Pulls follow each other and half of the bytes in files are
// dead.
//
// The rows that such a read brings go into the cache, as those of any other stop. A
// copy of the bucket is carried by the pass, as if the pass's own Pull had read it
// (internal/carry).
//
// # Concurrency
//
// Unless they say otherwise, the methods of Elevator are called by the holder of the lock
// with which the table keeps rows from coming into the cache, which the table calls changing.
package elevator
