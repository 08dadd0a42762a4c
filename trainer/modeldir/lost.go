package modeldir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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
// in the others are as good as before: who brings the table back from elsewhere need not
// fetch those (Survivors).

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

// diskFailed reports whether an error is one that a broken disk causes, or its file system, which ext4 makes read-only after an error:
// files can be read there, perhaps all of them, but no run can go on with a table there until somebody has looked after it.
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

// CheckTable fails with a *LostError if directories of the model's table outside of the
// model directory, or files in them, are lost. It reads no rows.
func (m *Model) CheckTable(ctx context.Context, log *slog.Logger) error {
	dirs, err := outside.Dirs(filepath.Join(m.Dir, m.Generation))
	if err != nil || len(dirs) == 0 {
		return err
	}
	if err := checkDirs(dirs); err != nil {
		return err
	}
	return m.CheckFiles(ctx, log)
}

// CheckFiles fails if a file of the model's table does not exist, or has lost bytes at its end: with a
// *LostError if a disk may be the cause. It reads none, so that those which have not arrived do not matter.
func (m *Model) CheckFiles(ctx context.Context, log *slog.Logger) error {
	if m.Source == nil {
		m.Source = unread{}
		defer func() { m.Source = nil }()
	}
	dirs := m.TableDirs()
	held, err := m.HoldTable(ctx, log)
	if err != nil {
		return TableLost(dirs, err)
	}
	defer held.Close() // it was only read
	o, err := m.TableOptions(sparsetable.Options{})
	if err == nil {
		_, err = sparsetable.PortableFiles(o)
	}
	return TableLost(dirs, err)
}

// unread is the source of the bytes of files that are not read.
type unread struct{}

func (unread) Lacks(string) bool                         { return false }
func (unread) Here(string, int64, int64) bool            { return true }
func (unread) Await(string, int64, int64) error          { return nil }
func (unread) Again(string, []byte, int64) (bool, error) { return false, nil }

// AllTableDirs are the directories of the tables of all generations in the model directory dir, as far
// as they are known.
func AllTableDirs(dir string) (all []string) {
	for _, g := range generations(dir) {
		all = append(all, dirsOf(filepath.Join(dir, g))...)
	}
	return all
}

// TableDirs are the directories of the model's table, as far as that is known.
func (m *Model) TableDirs() []string {
	return dirsOf(filepath.Join(m.Dir, m.Generation))
}

// dirsOf are the directories of the table of a generation, as far as that is known.
func dirsOf(gen string) []string {
	if dirs, _ := outside.Dirs(gen); len(dirs) > 0 {
		return dirs
	}
	return []string{filepath.Join(gen, modelfiles.Table)}
}

// Survivors are the paths of the files of the model's table that are still there, by their
// names in a list of the model's files.
func (m *Model) Survivors() map[string]string {
	return survivors(filepath.Join(m.Dir, m.Generation))
}

// Survivors are the paths of the files that are still there of the table of the interrupted
// run in the model directory dir, by their names in a list of the run's files.
func Survivors(dir string) map[string]string {
	gen := unfinished(dir)
	if gen == "" {
		return nil
	}
	return survivors(filepath.Join(dir, gen))
}

// InterruptedTable returns o as the options of the table of the interrupted run in the model
// directory dir.
func InterruptedTable(dir string, o sparsetable.Options) (sparsetable.Options, error) {
	gen := filepath.Join(dir, unfinished(dir))
	dirs, err := outside.Dirs(gen)
	o.Dir, o.SSD.Dirs = filepath.Join(gen, modelfiles.Table), dirs
	return o, err
}

func survivors(gen string) map[string]string {
	dirs, _ := outside.Dirs(gen) // what cannot be found is fetched
	if len(dirs) == 0 {
		dirs = []string{filepath.Join(gen, modelfiles.Table)}
	}
	out := make(map[string]string)
	for _, dir := range dirs {
		files, err := sparsetable.FilesIn(dir)
		if err != nil {
			continue
		}
		for _, name := range files.Rows {
			out[modelfiles.Table+"/"+name] = filepath.Join(dir, name)
		}
	}
	return out
}
