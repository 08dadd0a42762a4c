// Package modelfiles lists the files of a model directory that are moved to another machine: those
// of a model (OfModel), or of a snapshot of an unfinished run (OfRun). Package modeldir rebuilds
// the same there.
//
// Files of a generation are named by their path in it. Files of its table are table/NAME, wherever
// they are, and include the index of a table on SSD. The list leaves out what belongs to one
// machine (locks, the list of the table's directories), MODEL.json and RESUME.json, which are
// passed separately, and the quarantine of a model, whose rows may contain personal data and are in
// the input.
//
// A snapshot has its dense files, its reports, as outside/NAME if they are not in the model
// directory, and one index for each of its snapshots of the table. RESUME.json identifies these by
// number, and the numbers stay. A snapshot holds its files open, so they can be read while the run
// goes on and deletes them. Indexes lets the indexes of snapshots share unchanged parts.
package modelfiles
