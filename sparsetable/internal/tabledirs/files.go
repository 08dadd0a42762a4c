package tabledirs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/memory"
	"aibox/sparsetable/internal/spool"
)

// Only this file knows which files a table has in its directories. Code that looks for tables or
// deletes one calls FilesIn or Remove.

// tableFile matches the names of a table's files:
//
//	T-….bucket, T-….delta, T-….spool   of kind "ssd"; T is the table's number, and
//	                                   more numbers with hyphens between them follow.
//	                                   With .part appended, the file is incomplete and
//	                                   still being fetched from elsewhere;
//	                                   with .unreadable, it was set aside (SetAside)
//	.probe-…                           a file that tests what the file system can do
//	ARRIVING.json                      see ArrivingName
//	snapshot-N.rows, snapshot-N.rows.tmp, LOCK   of kind "memory"
//
// In addition, the first directory of a table on SSD has the directory catalog, and each of the
// others has the directory T.catalog with a copy of it (internal/catalogcopy).
var tableFile = regexp.MustCompile(`^(?:[0-9a-f]{16}-[0-9a-f-]+\.(?:bucket|delta|spool)(?:\.part|\.unreadable)?|\.probe-[0-9]+|snapshot-[0-9]{20}\.rows(?:\.tmp|\.part)?|LOCK|ARRIVING\.json(?:\.tmp)?)$`)

// Files lists the files of tables in a directory, by their base names.
type Files struct {
	Catalog   bool     // there is a catalog: it is the first directory of a table on SSD
	Rows      []string // files of tables on SSD that hold rows
	Snapshots []string // files of tables in memory that hold rows
	Others    []string // other files of tables
	Copies    []string // those of Others that are directories with a copy of a catalog
}

// HasTable reports whether the directory has what is needed to open a table: a catalog or a
// snapshot.
func (f Files) HasTable() bool { return f.Catalog || len(f.Snapshots) > 0 }

// Names returns the names of all files, including the catalog.
func (f Files) Names() []string {
	var names []string
	if f.Catalog {
		names = append(names, CatalogName)
	}
	names = append(names, f.Rows...)
	names = append(names, f.Snapshots...)
	return append(names, f.Others...)
}

// HasRows reports whether a table on SSD has rows in a file of that name.
func HasRows(name string) bool {
	var f Files
	f.add(name, false)
	return len(f.Rows) > 0
}

// FilesIn returns which files of tables are in dir. A directory that does not exist
// has none.
func FilesIn(dir string) (Files, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Files{}, nil
	}
	if err != nil {
		return Files{}, err
	}
	var f Files
	for _, e := range entries {
		f.add(e.Name(), e.IsDir())
	}
	return f, nil
}

func (f *Files) add(name string, isDir bool) {
	switch {
	case isDir:
		f.Catalog = f.Catalog || name == CatalogName
		if catalogcopy.IsDirName(name) {
			f.Others, f.Copies = append(f.Others, name), append(f.Copies, name)
		}
	case !tableFile.MatchString(name):
	case memory.IsSnapshotName(name):
		f.Snapshots = append(f.Snapshots, name)
	case strings.HasSuffix(name, ".bucket"), strings.HasSuffix(name, deltafile.Suffix), strings.HasSuffix(name, spool.Suffix):
		f.Rows = append(f.Rows, name)
	default:
		f.Others = append(f.Others, name)
	}
}

// Remove deletes the table on SSD whose first directory is one of dirs, with its files in the
// others. It keeps the files of other tables there, and the directories. If the catalog is lost,
// its copies identify the table. If there is neither, or the catalog cannot be read, Remove deletes
// the files of all tables in dirs if all is true, and nothing otherwise. It returns ErrInUse if the
// table is open.
func Remove(dirs []string, all bool) error {
	for _, dir := range dirs {
		path := filepath.Join(dir, CatalogName)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue
		}
		table := ""
		if c, err := catalog.Open(catalog.Options{Dir: path, ReadOnly: true}); err == nil {
			table = c.Format().TableID
			if err := c.Close(); err != nil {
				return apierr.Of(err)
			}
		} else if !all || errors.Is(err, catalog.ErrInUse) {
			return apierr.Of(err)
		}
		lock, err := catalog.LockAlone(path)
		if err != nil {
			return fmt.Errorf("the table in %s: %w", dir, apierr.Of(err))
		}
		defer lock.Close()
		if !all {
			return removeFiles(dirs, table, path)
		}
	}
	table := ""
	for _, path := range CopiesIn(dirs) {
		name := filepath.Base(path)
		if !all && table != "" && !strings.HasPrefix(name, table) {
			return fmt.Errorf("%w: there are copies of the catalogs of several tables in %s, but no catalog", contract.ErrFiles, strings.Join(dirs, ", "))
		}
		table = name[:tableNumberLen]
		lock, err := catalog.LockAlone(path)
		if err != nil {
			return fmt.Errorf("the table in %s: %w", filepath.Dir(path), apierr.Of(err))
		}
		defer lock.Close()
	}
	switch {
	case all:
		return removeFiles(dirs, "", "")
	case table == "":
		return nil
	}
	return removeFiles(dirs, table, "")
}

// tableNumberLen is the length of a table's number, with which the names of its files begin.
const tableNumberLen = 16

// CopiesIn returns the copies of catalogs in directories. A directory that cannot be read has none.
func CopiesIn(dirs []string) (paths []string) {
	for _, dir := range dirs {
		files, _ := FilesIn(dir)
		for _, name := range files.Copies {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// removeFiles deletes the files of tables in dirs whose names begin with prefix, and the catalog at
// catalogPath; if that is "", it deletes the catalog of each directory. A catalog and its copies
// are deleted last, because without them nothing tells which table the other files belong to.
func removeFiles(dirs []string, prefix, catalogPath string) error {
	var errs []error
	var catalogs []string
	if catalogPath != "" {
		catalogs = append(catalogs, catalogPath)
	}
	for _, dir := range dirs {
		files, err := FilesIn(dir)
		errs = append(errs, err)
		if files.Catalog && catalogPath == "" {
			catalogs = append(catalogs, filepath.Join(dir, CatalogName))
		}
		if prefix == "" { // a process may have been killed while it made the catalog from a copy
			errs = append(errs, os.RemoveAll(filepath.Join(dir, CatalogName+catalogcopy.NewSuffix)), os.RemoveAll(filepath.Join(dir, CatalogName+catalogcopy.OldSuffix)))
		}
		files.Catalog = false
		for _, name := range files.Names() {
			switch {
			case !strings.HasPrefix(name, prefix):
			case slices.Contains(files.Copies, name):
				catalogs = append(catalogs, filepath.Join(dir, name))
			default:
				errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, path := range catalogs {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}
