// Package prioritysaves saves the rows of a table that matter most (package priority) between two
// snapshots in snapshots.remote (CPR, Maeng et al., MLSys 2021, §4.2): r·N of N rows every
// r·T_save. There is one save at a time, which goes through these stages:
//
//	chosen      with a local snapshot, on the training goroutine: only the keys
//	collected   in the background, the rows are pulled from the table, some at a time. After its
//	            next pass, when nobody changes them, the training goroutine copies those that are
//	            pinned by then, and they are written to a file without a name
//	waiting     until a local snapshot is at least as new as each of the rows: a run resumes from
//	            its local snapshot, and no row may be ahead of that
//	uploaded    as a publication of its own kind (package remote), committed by a rename
//
// So rows may be of different steps, which partial recovery allows, and training waits only for
// copies in memory. The model does not depend on any of this. A process that resumes a run starts
// counting anew, and uploads a snapshot first.
//
// The rows of a save count as saved when they are copied. If uploading fails, it is tried again,
// and no other save begins until it has succeeded or a snapshot is uploaded.
package prioritysaves
