package sparsetable

import (
	"io"
	"os"
	"path/filepath"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/tabledirs"
)

// Files lists the files of tables in a directory, by their base names.
type Files = tabledirs.Files

// FilesIn returns which files of tables are in dir. A directory that does not exist
// has none.
func FilesIn(dir string) (Files, error) { return tabledirs.FilesIn(dir) }

// Remove deletes the table on SSD whose first directory is one of names, with its
// files in the others. It keeps the files of other tables there, and the
// directories. Where the catalog is lost, copies of it say which table it is. Where there is
// neither, or a catalog that cannot be read, it deletes the files of all tables in names if all
// is true, and nothing otherwise. It returns ErrInUse where the table is open.
func Remove(names []string, all bool) error { return tabledirs.Remove(names, all) }

// Hold prevents that the table in the directories of o is opened for writing until the result is
// closed, just as a table that is open for reading does. It returns ErrInUse where the table is
// open for writing. Where the table's catalog is lost, it holds the copies of that. A table of
// KindMemory is read completely by Open, so for it Hold does nothing.
func Hold(o Options) (io.Closer, error) {
	o.ensureDefaults()
	if o.Kind != KindSSD {
		return io.NopCloser(nil), nil
	}
	return o.onSSD().Directories().Hold()
}

// KindIn is the kind of the table whose snapshots are in dirs: a table on SSD has its catalog, or
// a copy of it, in each of its directories.
func KindIn(dirs ...string) string {
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, tabledirs.CatalogName)); err == nil {
			return KindSSD
		}
	}
	if len(tabledirs.CopiesIn(dirs)) > 0 {
		return KindSSD
	}
	return KindMemory
}

// LostDir is a directory that cannot be used, or has no file of the table.
type LostDir = tabledirs.Lost

// Source has what bucket files lack.
type Source = blockio.Source

// ArrivingName is the name of the file that says that bucket files lack bytes.
const ArrivingName = tabledirs.ArrivingName

// ErrArriving says that the files of a table have not all arrived from elsewhere.
var ErrArriving = tabledirs.ErrArriving

// DiskFailed reports whether an error is one that a disk causes that is broken or away, and not
// one that goes away when somebody frees space, or gives a permission.
func DiskFailed(err error) bool { return tabledirs.DiskFailed(err) }

// HasRows reports whether a table on SSD has rows in a file of that name.
func HasRows(name string) bool { return tabledirs.HasRows(name) }

// SetAside takes a file away from a table that is closed, because the file cannot be read though its
// disk still can be written: the table lacks it then, and can be recovered as one that has lost a
// file. So do the tables in dirs that have links to the same file. The file is kept under another name,
// with the bad blocks of the disk, as long as the table is.
func SetAside(file string, dirs []string) error { return tabledirs.SetAside(file, dirs) }
