// Package dataset has the data of a run: which files are read, how they are read in each phase of
// the run, what is known of their values before training begins, and the file of bad rows.
//
// The files are those that were listed when the run began: the check of the data, the scan, every
// epoch and every evaluation read exactly these. Files that arrive during the run are ignored, and
// a file that changes ends the run.
package dataset
