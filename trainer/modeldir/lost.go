package modeldir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/internal/errkind"
	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/outside"
	"aibox/trainer/modelfiles"
)

// If a disk fails, a table with directories on several disks loses one of them. The files in the
// others remain usable (remainingfiles.go).

// LostDir is a lost directory of a table: it is missing, or empty because another disk is mounted
// there, or its disk does not answer.
type LostDir struct {
	Dir    string `json:"dir"`
	Reason string `json:"reason"`
}

// lostDir returns dir as lost. The reason does not repeat its path.
func lostDir(dir string, err error) LostDir {
	reason := strings.ReplaceAll(err.Error(), dir+"/", "")
	return LostDir{dir, strings.ReplaceAll(reason, " "+dir+":", ":")}
}

// Entry returns the parent directory in which each generation has a directory of its own, such as
// d: an entry of sparse_table.dirs, or the model directory if that has the table.
func (d LostDir) Entry() string {
	if filepath.Base(d.Dir) == modelfiles.Table {
		return filepath.Dir(filepath.Dir(d.Dir))
	}
	return filepath.Dir(d.Dir)
}

// Answers fails if the model directory, or the generation in it, is no longer the one that the
// Writer has locked, or cannot be read and written.
func (w *Writer) Answers() error {
	if !w.lock.current() {
		return fmt.Errorf("%s: %w", w.lock.path(), fs.ErrNotExist)
	}
	if _, err := os.ReadDir(w.genDir()); err != nil {
		return err
	}
	return probe(w.genDir())
}

// LostError says that a table has lost some of its directories, or files in them.
type LostError struct {
	Dirs []string  // of the table
	Lost []LostDir // some of Dirs; empty if Err does not say which
	Err  error     // the error that showed the loss
}

func (e *LostError) Error() string {
	if len(e.Lost) == 0 {
		return fmt.Sprintf("the table in %s has lost files: %v", strings.Join(e.Dirs, ", "), e.Err)
	}
	var lost []string
	for _, d := range e.Lost {
		lost = append(lost, fmt.Sprintf("%s (%s)", d.Dir, d.Reason))
	}
	if len(e.Dirs) > len(e.Lost) {
		return fmt.Sprintf("the table, which is in %d directories, has lost %s", len(e.Dirs), strings.Join(lost, ", "))
	}
	return "the table has lost " + strings.Join(lost, ", ")
}

// Unwrap returns the error that showed the loss.
func (e *LostError) Unwrap() error { return e.Err }

// ErrorKind says that the error is about the disk.
func (e *LostError) ErrorKind() errkind.Kind { return errkind.IO }

// Unreadable returns the paths of the table's files that could not be read although their disk
// answered, if the error says so. It returns none for a table in a model directory, which is not
// recovered if it lacks a file.
func (e *LostError) Unreadable() (files []string) {
	for _, at := range pathErrors(e.Err) {
		// Files of the catalog are left out, since it has copies.
		if filepath.Base(filepath.Dir(at.Path)) != modelfiles.Table && strings.Contains(at.Op, "read") && sparsetable.DiskFailed(at) && sparsetable.HasRows(filepath.Base(at.Path)) && !slices.Contains(files, at.Path) {
			files = append(files, at.Path)
		}
	}
	return files
}

// errEmptied is the reason why an existing directory is lost.
var errEmptied = errors.New("it is empty, or has files of something else: is another disk mounted there?")

// checkDirs fails with a *LostError if some of a table's directories are lost.
func checkDirs(dirs []string) error {
	e := &LostError{Dirs: dirs}
	for _, dir := range dirs {
		err := checkDir(dir)
		if err != nil && !errors.Is(err, errEmptied) && !DiskLost(err) {
			return err
		}
		if err != nil {
			e.Lost = append(e.Lost, lostDir(dir, err))
			e.Err = errors.Join(e.Err, err)
		}
	}
	if e.Err != nil {
		return e
	}
	return nil
}

func checkDir(dir string) error {
	if err := diskfault.At("open", dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == outside.OwnerName {
			return readFromDisk(filepath.Join(dir, outside.OwnerName))
		}
	}
	// An earlier version made directories without OWNER.json.
	if files, err := sparsetable.FilesIn(dir); err != nil || files.Catalog || len(files.Rows) > 0 {
		return err
	}
	return errEmptied
}

// Damaged reports whether the files of an interrupted run are damaged or incomplete, so that no
// process can resume it. A lost directory of its table does not count, since the run can be resumed
// then.
func Damaged(err error) bool {
	var table *sparsetable.CorruptionError
	var dir *CorruptionError
	if errors.As(err, new(*LostError)) {
		return false
	}
	return errors.As(err, &table) || errors.As(err, &dir) || errors.Is(err, sparsetable.ErrNoSnapshot)
}

// DiskLost reports whether an error is caused by a missing or broken disk. An error that goes away
// when somebody frees space or grants a permission is not.
func DiskLost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || diskFailed(err)
}

// diskFailed reports whether an error is caused by a broken disk, or by its file system. After an
// error, ext4 makes a file system read-only: its files can be read, perhaps all of them, but no run
// can continue with a table there until somebody has repaired it.
func diskFailed(err error) bool { return sparsetable.DiskFailed(err) || errors.Is(err, unix.EROFS) }

// TableLost takes the error with which opening a table in dirs has failed. It returns it as a
// *LostError if the table has lost files, or if they are damaged or cannot be read.
func TableLost(dirs []string, err error) error {
	var lost *LostError
	var damaged *sparsetable.CorruptionError
	var incomplete *CorruptionError
	if err == nil || len(dirs) == 0 || errors.As(err, &lost) {
		return err
	}
	if !errors.As(err, &damaged) && !errors.As(err, &incomplete) && !errors.Is(err, sparsetable.ErrFiles) && !errors.Is(err, sparsetable.ErrNoSnapshot) && !DiskLost(err) {
		return err
	}
	return &LostError{Dirs: dirs, Lost: blamed(dirs, err), Err: err}
}

// TableFailed takes the error that has ended a run or one of its snapshots. It returns it as a
// *LostError if the disk of one of dirs, directories of tables that the run had open, has caused
// it.
func TableFailed(dirs []string, err error) error {
	var lost *LostError
	if errors.As(err, &lost) {
		return err
	}
	if at := blamed(dirs, err); len(at) > 0 {
		return &LostError{Dirs: dirs, Lost: at, Err: err}
	}
	return err
}

// CheckOpenTable fails with a *LostError if some of the directories of an open table, or files of
// its snapshots, are lost: the table itself may not notice while it has them open.
func CheckOpenTable(dirs []string, table sparsetable.Table, snapshots ...uint64) error {
	if err := checkDirs(dirs); err != nil {
		return err
	}
	holder, ok := table.(sparsetable.SnapshotHolder)
	if !ok || len(dirs) == 0 {
		return nil
	}
	for _, id := range snapshots {
		held, err := holder.HoldSnapshot(id)
		if err == nil {
			err = held.Release()
		}
		if errors.Is(err, sparsetable.ErrFiles) {
			return &LostError{Dirs: dirs, Err: err}
		}
	}
	return nil
}

// blamed returns those of dirs that contain, or contained, a file named by err, if err is caused by
// a missing or broken disk.
func blamed(dirs []string, err error) (lost []LostDir) {
	for _, at := range pathErrors(err) {
		i := disk.Innermost(dirs, at.Path)
		if i >= 0 && DiskLost(at) && !slices.ContainsFunc(lost, func(d LostDir) bool { return d.Dir == dirs[i] }) {
			lost = append(lost, lostDir(dirs[i], at))
		}
	}
	return lost
}

// pathErrors returns all errors about files that err wraps.
func pathErrors(err error) (all []*fs.PathError) {
	switch e := err.(type) {
	case *fs.PathError:
		return []*fs.PathError{e}
	case *os.LinkError:
		return []*fs.PathError{{Op: e.Op, Path: e.New, Err: e.Err}}
	case interface{ Unwrap() error }:
		return pathErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, e := range e.Unwrap() {
			all = append(all, pathErrors(e)...)
		}
	}
	return all
}
