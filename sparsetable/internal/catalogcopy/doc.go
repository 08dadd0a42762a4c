// Package catalogcopy keeps copies of a table's catalog in the table's other directories,
// so that the loss of any directory leaves a whole one.
//
//	dirs[0]/catalog/          the catalog, see package catalog
//	dirs[i]/T.catalog/        its copy, T being the table's number; i > 0
//	    000012.sst …          sorted tables, which never change
//	    COPY                  names them, and has the catalog's small files
//	    LOCK                  is locked by who reads the copy while there is no catalog
//
// The catalog is the one that counts. After each commit and each drop, Update brings the
// copies up to date before the caller goes on, above all before files are deleted that the
// catalog needed until then. To that end it copies the sorted tables that a copy lacks,
// which are as large as what the commit wrote, syncs them, and replaces COPY by renaming.
// That is the one instant at which the copy changes: a crash leaves the old or the new one,
// and a snapshot that is in the catalog alone was not reported as committed yet. Then it
// deletes the tables that COPY does not name.
//
// COPY is a line of JSON, the copyFile, and a line with the CRC-32C of the first. It has a
// number that grows with each Update, so that the newest of several copies is known, and
// the checksums of the sorted tables. A copy is used only when all checksums match.
//
// A copy that cannot be written, or made because the catalog cannot be read, does not stop the
// table. After a commit it stays as it was: the catalog still has all snapshots that it has.
// After a drop, where that disk still works, COPY is deleted, so that the copy does not speak
// of files that were deleted since. Each Update tries again.
package catalogcopy
