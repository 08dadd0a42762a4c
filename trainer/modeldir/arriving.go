package modeldir

import (
	"path/filepath"
	"slices"

	"aibox/internal/disk"
	"aibox/sparsetable"
)

// A restored generation can be published before the bucket files of its table have arrived. Its
// table then has a record of what is missing, a copy in each of its directories
// (sparsetable.ArrivingName), and can be opened only with a source of the missing bytes. Only the
// process that holds the lock of the model directory writes the files and the record. If the files
// can never become complete, it withdraws the generation (Restoring.Discard).

// ArrivingTable is a table whose files have not all arrived.
type ArrivingTable struct {
	Generation string   // that the table belongs to
	Records    []string // paths of the copies of the record, one in each directory; some may be lost
	Dirs       []string // of the table
}

// Find returns the path of a file of the table, "" if it does not exist.
func (t *ArrivingTable) Find(name string) string {
	for _, dir := range t.Dirs {
		if path := filepath.Join(dir, name); disk.Exists(path) {
			return path
		}
	}
	return ""
}

// Arriving returns the tables in the model directory dir whose files have not all arrived. It
// leaves out generations that were given up but could not be deleted: they may have files of the
// same snapshot, on a disk that has failed.
func Arriving(dir string) (out []ArrivingTable) {
	all, _ := generations(dir) // whoever opens the directory reports what is wrong
	for _, g := range all {
		if !tables.Needs(dir, g) {
			continue
		}
		if t := arrivingIn(filepath.Join(dir, g)); t != nil {
			out = append(out, *t)
		}
	}
	return out
}

// Arriving returns the model's table if not all of its files have arrived, and nil otherwise.
func (m *Model) Arriving() *ArrivingTable {
	return arrivingIn(m.genDir())
}

// arrivingIn returns the table of the generation in gen, if it is arriving. Whoever opens it
// reports what is wrong with its directories.
func arrivingIn(gen string) *ArrivingTable {
	dirs := dirsOf(gen)
	records := ArrivingRecords(dirs)
	if !slices.ContainsFunc(records, disk.Exists) {
		return nil
	}
	return &ArrivingTable{filepath.Base(gen), records, dirs}
}

// ArrivingRecords returns the paths of the copies of the record of a table in dirs.
func ArrivingRecords(dirs []string) (paths []string) {
	for _, dir := range dirs {
		paths = append(paths, filepath.Join(dir, sparsetable.ArrivingName))
	}
	return paths
}

// InterruptedArrives reports whether files of the table of the interrupted run in the model
// directory dir have not all arrived.
func InterruptedArrives(dir string) bool {
	gen, err := unfinished(dir)
	return err == nil && gen != "" && arrivingIn(filepath.Join(dir, gen)) != nil
}
