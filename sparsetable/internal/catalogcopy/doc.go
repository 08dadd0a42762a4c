// Package catalogcopy keeps copies of a table's catalog in the table's other directories,
// so that the loss of any directory leaves a whole one.
//
//	dirs[0]/catalog/          the catalog, see package catalog
//	dirs[i]/T.catalog/        its copy, T being the table's number; i > 0
//	    000012.sst …          sorted tables, which never change
//	    COPY                  names them, and has the catalog's small files
//	    LOCK                  is locked by readers of the copy while there is no catalog
//
// The catalog is authoritative. Update brings the copies up to date after each commit and each
// drop, before the caller continues, and above all before the caller deletes files that the catalog
// needed until then. It copies the sorted tables that a copy lacks (as many bytes as the commit
// wrote), syncs them, and replaces COPY by renaming. The rename is the one instant at which the
// copy changes: a crash leaves the old or the new one, and a snapshot that only the catalog has was
// not yet reported as committed. Then Update deletes the tables that COPY does not name.
//
// COPY is a line of JSON, the copyFile, and a line with the CRC-32C of the first. It holds a number
// that grows with each Update, which tells the newest of several copies, and the checksums of the
// sorted tables. A copy is used only when all checksums match.
//
// The table goes on when a copy cannot be written, or cannot be made because the catalog cannot be
// read. After a commit, such a copy stays as it was: the catalog still has all of its snapshots.
// After a drop, COPY is deleted if that disk still works, so that the copy does not refer to files
// that were deleted since. Each Update tries again.
package catalogcopy
