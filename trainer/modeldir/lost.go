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

// A table whose directories are on several disks loses one of them with its disk. The files
// in the others are as good as before (survivors.go).

// LostDir is a directory of a table that is lost: it is missing, or empty because another
// disk is mounted there, or its disk does not answer.
type LostDir struct {
	Dir    string `json:"dir"`
	Reason string `json:"reason"`
}

// lostDir says that dir is lost. The reason does not repeat its path.
func lostDir(dir string, err error) LostDir {
	reason := strings.ReplaceAll(err.Error(), dir+"/", "")
	return LostDir{dir, strings.ReplaceAll(reason, " "+dir+":", ":")}
}

// Entry is where each generation has a directory of its own, of which d is one: an entry of
// sparse_table.dirs, or the model directory, if the table is in there.
func (d LostDir) Entry() string {
	if filepath.Base(d.Dir) == modelfiles.Table {
		return filepath.Dir(filepath.Dir(d.Dir))
	}
	return filepath.Dir(d.Dir)
}

// Answers fails if the model directory, or the generation in it, is not the one any more that the
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
	Lost []LostDir // of these; empty: Err does not say which
	Err  error     // what showed it
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

// Unwrap returns what showed the loss.
func (e *LostError) Unwrap() error { return e.Err }

// ErrorKind says that it is about the disk.
func (e *LostError) ErrorKind() errkind.Kind { return errkind.IO }

// Unreadable are the paths of the files of a table that could not be read, though their disk
// answered, as far as the error says so. A table in a model directory has none: where it lacks a file, it
// is not recovered.
func (e *LostError) Unreadable() (files []string) {
	for _, at := range pathErrors(e.Err) {
		// The catalog has copies.
		if filepath.Base(filepath.Dir(at.Path)) != modelfiles.Table && strings.Contains(at.Op, "read") && sparsetable.DiskFailed(at) && sparsetable.HasRows(filepath.Base(at.Path)) && !slices.Contains(files, at.Path) {
			files = append(files, at.Path)
		}
	}
	return files
}

// errEmptied is why a directory is lost that exists.
var errEmptied = errors.New("it is empty, or has files of something else: is another disk mounted there?")

// checkDirs fails with a *LostError if some of the directories of a table are lost.
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
	// An earlier version made directories without an owner.
	if files, err := sparsetable.FilesIn(dir); err != nil || files.Catalog || len(files.Rows) > 0 {
		return err
	}
	return errEmptied
}

// Damaged reports whether the files of an interrupted run are damaged or incomplete, so
// that no process can go on with them. If a directory of its table is lost, one can.
func Damaged(err error) bool {
	var table *sparsetable.CorruptionError
	var dir *CorruptionError
	if errors.As(err, new(*LostError)) {
		return false
	}
	return errors.As(err, &table) || errors.As(err, &dir) || errors.Is(err, sparsetable.ErrNoSnapshot)
}

// DiskLost reports whether an error is one that a disk causes that is missing or broken,
// and not one that goes away when somebody frees space, or gives a permission.
func DiskLost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || diskFailed(err)
}

// diskFailed reports whether an error is one that a broken disk causes, or its file system, which
// ext4 makes read-only after an error: files can be read there, perhaps all of them, but no run can
// go on with a table there until somebody has looked after it.
func diskFailed(err error) bool { return sparsetable.DiskFailed(err) || errors.Is(err, unix.EROFS) }

// TableLost returns the error with which opening a table in dirs has failed as a
// *LostError, if it is because the table has lost files, or because they are damaged or
// cannot be read.
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

// TableFailed returns the error that has ended a run, or one of its snapshots, as a *LostError if
// the disk of one of dirs has caused it, which are directories of tables that the run had open.
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

// CheckOpenTable fails with a *LostError if some of the directories of a table that is open, or
// files of its snapshots, are lost: the table itself may not notice while it has them open.
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

// blamed are those of dirs in which there is a file, or was, that err is about, if it is an error
// as a disk causes it that is missing or broken.
func blamed(dirs []string, err error) (lost []LostDir) {
	for _, at := range pathErrors(err) {
		i := disk.Innermost(dirs, at.Path)
		if i >= 0 && DiskLost(at) && !slices.ContainsFunc(lost, func(d LostDir) bool { return d.Dir == dirs[i] }) {
			lost = append(lost, lostDir(dirs[i], at))
		}
	}
	return lost
}

// pathErrors are all errors about files that err wraps.
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
