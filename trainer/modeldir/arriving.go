package modeldir

import (
	"path/filepath"

	"aibox/sparsetable"
)

// A generation that is restored can be published before the bucket files of its table have
// arrived. Its table then has a record of what lacks, and can be opened by who has that
// (sparsetable.ArrivingName). The process that holds the lock of the model directory, and no
// other, writes the files and the record. If they turn out never to become whole, it takes the
// generation back (Restoring.Discard).

// ArrivingTable is a table whose files have not all arrived.
type ArrivingTable struct {
	Generation string   // that it belongs to
	Record     string   // path of the record
	Dirs       []string // of the table
}

// Find is the path of a file of the table, "" if it does not exist.
func (t *ArrivingTable) Find(name string) string {
	for _, dir := range t.Dirs {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	return ""
}

// Arriving returns the tables of the model directory dir whose files have not all arrived.
func Arriving(dir string) (out []ArrivingTable) {
	for _, g := range generations(dir) {
		if t := arrivingIn(filepath.Join(dir, g)); t != nil {
			out = append(out, *t)
		}
	}
	return out
}

// Arriving is the model's table, if not all of its files have arrived; nil: they have.
func (m *Model) Arriving() *ArrivingTable {
	return arrivingIn(filepath.Join(m.Dir, m.Generation))
}

// arrivingIn is the table of the generation in gen. What is wrong with its directories is said
// by who opens it.
func arrivingIn(gen string) *ArrivingTable {
	dirs, _ := tableDirs(gen)
	if len(dirs) == 0 {
		dirs = []string{filepath.Join(gen, tableName)}
	}
	for _, dir := range dirs {
		if record := filepath.Join(dir, sparsetable.ArrivingName); exists(record) {
			return &ArrivingTable{filepath.Base(gen), record, dirs}
		}
	}
	return nil
}
