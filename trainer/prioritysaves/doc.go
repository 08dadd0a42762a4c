// Package prioritysaves saves the rows of a table that matter most (package priority) between two
// snapshots in snapshots.remote (CPR, Maeng et al., MLSys 2021, §4.2): r·N of N rows every
// r·T_save. A save goes through these stages, one save at a time:
//
//	chosen      with a local snapshot, on the training goroutine: keys alone
//	collected   in the background, the rows are pulled from the table, some at a time. The
//	            training goroutine copies those that are pinned by then after its next pass,
//	            when nobody changes them, and they are written to a file without a name
//	waiting     until there is a local snapshot that is at least as new as each of the rows: a
//	            run goes on from its local snapshot, and no row may be ahead of it
//	uploaded    as a publication of its own kind (package remote), committed by a rename
//
// So no two rows need be of the same step, which partial recovery does not ask for, and
// training waits for nothing but copies in memory. The model does not depend on any of this. A
// process that goes on with a run begins to count anew, and uploads a snapshot first.
//
// The rows of a save are counted as saved when they are copied; where uploading fails, it is
// tried again, and no other save begins until it has succeeded, or a snapshot is uploaded.
package prioritysaves
