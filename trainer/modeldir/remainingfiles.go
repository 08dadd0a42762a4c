package modeldir

import (
	"path/filepath"

	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/outside"
	"aibox/trainer/modelfiles"
)

// These functions say where the tables of generations are, as far as that is known: one of the
// directories, or their list, may be lost. A table that is restored from elsewhere need not fetch
// its remaining files.

// AllTableDirs returns the known directories of the tables of all generations in the model
// directory dir.
func AllTableDirs(dir string) (all []string) {
	names, _ := generations(dir) // an error leaves out generations that are not known
	for _, g := range names {
		all = append(all, dirsOf(filepath.Join(dir, g))...)
	}
	return all
}

// TableDirs returns the known directories of the model's table.
func (m *Model) TableDirs() []string {
	return dirsOf(m.genDir())
}

// dirsOf returns the known directories of the table of a generation.
func dirsOf(gen string) []string {
	if dirs, _ := outside.Dirs(gen); len(dirs) > 0 {
		return dirs
	}
	return []string{filepath.Join(gen, modelfiles.Table)}
}

// RemainingFiles returns the paths of the remaining files of the model's table, by their names in a list
// of the model's files.
func (m *Model) RemainingFiles() map[string]string {
	return remainingFiles(m.genDir())
}

// RemainingFiles returns the paths of the remaining files of the table of the interrupted run in the
// model directory dir, by their names in a list of the run's files.
func RemainingFiles(dir string) map[string]string {
	gen, err := unfinished(dir)
	if gen == "" || err != nil {
		return nil
	}
	return remainingFiles(filepath.Join(dir, gen))
}

func remainingFiles(gen string) map[string]string {
	out := make(map[string]string)
	for _, dir := range dirsOf(gen) {
		files, err := sparsetable.FilesIn(dir)
		if err != nil {
			continue // what cannot be found is fetched
		}
		for _, name := range files.Rows {
			out[modelfiles.Table+"/"+name] = filepath.Join(dir, name)
		}
	}
	return out
}

// InterruptedTable returns o as the options of the table of the interrupted run in the model
// directory dir.
func InterruptedTable(dir string, o sparsetable.Options) (sparsetable.Options, error) {
	name, err := unfinished(dir)
	if err != nil {
		return o, err
	}
	gen := filepath.Join(dir, name)
	dirs, err := outside.Dirs(gen)
	o.Dir, o.SSD.Dirs = filepath.Join(gen, modelfiles.Table), dirs
	return o, err
}
