// Package modelfiles is what a model directory has, as a list of files that are taken to another
// machine: of a model (OfModel), or of a snapshot of a run that goes on (OfRun). Package modeldir
// makes the same of them there.
//
// The files of a generation have their names in it, and those of its table, wherever they are, are
// table/NAME. The index of a table on SSD is one of them. Not among them are what belongs to one
// machine (locks, the list of the table's directories), MODEL.json and RESUME.json, which are
// passed as they are, and the quarantine of a model, whose rows may hold personal data and are in
// the input.
//
// A snapshot has its dense files and its reports, as outside/NAME if they are not in the model
// directory, and one index for each of its snapshots of the table, which RESUME.json names by their
// numbers; these stay. What it holds are open files, so that they can be read while the run goes on
// and deletes them. Indexes has the indexes of snapshots share what did not change between them.
package modelfiles
