package modeldir

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/faults"
	"aibox/trainer/modelfiles"
)

// Place decides where the files with the given names and sizes are put, and makes their
// directories. A file of the table stays where an earlier call has put it or begun to. A file that
// has a remaining file is put on the same disk as that one.
func (r *Restoring) Place(names []string, bytes []int64, remaining map[string]string) error {
	var tableFiles []string
	var sizes []int64
	for i, name := range names {
		rest, ofTable := strings.CutPrefix(name, modelfiles.Table+"/")
		if ofTable && !modelfiles.IsIndex(name) {
			if rest != path.Base(rest) {
				return faults.Damaged(name, "it is not a valid name for a file of a table")
			}
			tableFiles, sizes = append(tableFiles, rest), append(sizes, bytes[i])
			continue
		}
		if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
			return err
		}
	}
	begun, err := r.begun()
	if err != nil {
		return err
	}
	r.place = make(map[string]int)
	if len(r.dirs) > 0 {
		for i, at := range sparsetable.SpreadFiles(tableFiles, sizes, len(r.dirs)) {
			if before, ok := begun[tableFiles[i]]; ok {
				at = before
			} else if beside := r.beside(remaining[modelfiles.Table+"/"+tableFiles[i]]); beside >= 0 {
				at = beside
			}
			r.place[tableFiles[i]] = at
		}
	}
	return nil
}

// begun returns, by file name, the indexes in r.dirs of the directories that contain files of the
// table. Each is also there by the name without its last suffix, which files have while they are
// being fetched.
func (r *Restoring) begun() (map[string]int, error) {
	out := make(map[string]int)
	for i, dir := range r.dirs {
		all, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			out[e.Name()], out[strings.TrimSuffix(e.Name(), path.Ext(e.Name()))] = i, i
		}
	}
	return out, nil
}

// beside returns the index in r.dirs of the directory that has the same parent as the directory of
// file, or -1 if there is none.
func (r *Restoring) beside(file string) int {
	return slices.IndexFunc(r.dirs, func(dir string) bool { return filepath.Dir(dir) == filepath.Dir(filepath.Dir(file)) })
}

// Path returns where a file that was given to Place is put.
func (r *Restoring) Path(name string) string {
	if rest, ofTable := strings.CutPrefix(name, modelfiles.Table+"/"); ofTable && !modelfiles.IsIndex(name) && len(r.dirs) > 0 {
		return filepath.Join(r.dirs[r.place[rest]], rest)
	}
	return r.path(name)
}

// ArrivingRecords returns the paths of the records of files of the table, which is on SSD, that
// exist without their bytes.
func (r *Restoring) ArrivingRecords() []string { return ArrivingRecords(r.tableOptions().SSD.Dirs) }

// path returns the path of a file in the generation. The index is not a file of the table.
func (r *Restoring) path(name string) string {
	if modelfiles.IsIndex(name) {
		return filepath.Join(r.w.genDir(), modelfiles.FlatName(name))
	}
	return filepath.Join(r.w.genDir(), filepath.FromSlash(name))
}

func (r *Restoring) tableOptions() sparsetable.Options {
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: r.w.TableDir()}
	o.SSD.Dirs = r.dirs
	if len(r.dirs) == 0 {
		o.SSD.Dirs = []string{r.w.TableDir()}
	}
	return o
}
