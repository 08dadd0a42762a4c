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

// Remove deletes the table on SSD whose first directory is one of names, with its files in the
// others. It keeps the files of other tables there, and the directories. If the catalog is lost,
// its copies identify the table. If there is neither, or the catalog cannot be read, Remove deletes
// the files of all tables in names if all is true, and nothing otherwise. It returns ErrInUse if
// the table is open.
func Remove(names []string, all bool) error { return tabledirs.Remove(names, all) }

// Hold prevents the table in the directories of o from being opened for writing until the result is
// closed, as a table that is open for reading does. It returns ErrInUse if the table is open for
// writing. If the table's catalog is lost, Hold holds its copies. A table of KindMemory is read
// completely by Open, so Hold does nothing for it.
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

// Source supplies bytes that bucket files lack.
type Source = blockio.Source

// ArrivingName is the name of the file whose presence says that bucket files lack bytes.
const ArrivingName = tabledirs.ArrivingName

// ErrArriving says that the files of a table have not all arrived from elsewhere.
var ErrArriving = tabledirs.ErrArriving

// DiskFailed reports whether a broken or missing disk caused err, as opposed to something that a
// user can mend by freeing space or granting a permission.
func DiskFailed(err error) bool { return tabledirs.DiskFailed(err) }

// HasRows reports whether a table on SSD has rows in a file of that name.
func HasRows(name string) bool { return tabledirs.HasRows(name) }

// SetAside takes away from a closed table a file that cannot be read although its disk can still be
// written. The table then lacks the file and can be recovered like one that has lost a file. The
// same happens to the tables in dirs that have links to the file. The file is kept under another
// name, so that the disk's bad blocks stay in use, as long as the table exists.
func SetAside(file string, dirs []string) error { return tabledirs.SetAside(file, dirs) }
