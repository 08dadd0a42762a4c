package modeldir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aibox/internal/disk"
	"aibox/internal/humanize"
	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/faults"
	"aibox/trainer/modeldir/internal/outside"
	"aibox/trainer/modelfiles"
)

// tables are the tables outside model directories.
var tables = &outside.Tables{
	Generations: func(model string) []string {
		all, _ := generations(model) // usually it is no model directory
		return all
	},
	LockRemoving: lockRemoving,
	Needs: func(model, gen string) bool {
		return isComplete(model, gen) || // or its run can be resumed after an interruption, or it was restored and given up, and no other one has taken its files
			!disk.Gone(filepath.Join(model, gen, resumeName)) || !disk.Gone(filepath.Join(model, gen, discardedName))
	},
}

// Orphan is a directory of a table outside model directories that no known model names.
type Orphan = outside.Orphan

// Orphans lists the directories of tables in dirs that no known model names and no run is writing.
// dirs are entries of sparse_table.dirs or directories of single tables. models lists model
// directories; these, and those beside them, are known as well.
func Orphans(dirs, models []string) ([]Orphan, error) { return tables.Orphans(dirs, models) }

// TableOf returns the model to which a table belongs, judging by the path of the table's directory.
// If the table is inside a model directory, that is model; otherwise model is the base name of the
// model directory. ok is false for other directories.
func TableOf(path string) (model string, inside, ok bool) {
	gen, name := filepath.Split(path)
	if gen = filepath.Clean(gen); name == modelfiles.Table && generationName.MatchString(filepath.Base(gen)) {
		return filepath.Dir(gen), true, true
	}
	model, ok = outside.ModelName(name)
	return model, false, ok
}

// outside returns the run's table outside the model directory.
func (w *Writer) outside() *outside.Run {
	if w.table == nil {
		w.table = tables.NewRun(w.dir, w.gen)
	}
	return w.table
}

// PlaceTable makes a directory for the run's table in each of dirs, which it creates if they are
// missing, and returns the absolute paths of the new directories. They belong to the generation and
// are deleted with it. PlaceTable is called once, before the table is made. Without dirs it does
// nothing, and the table is in TableDir.
func (w *Writer) PlaceTable(dirs []string) ([]string, error) { return w.outside().Place(dirs) }

// Freed lists the directories of killed runs that PlaceTable has found beside its own and deleted.
func (w *Writer) Freed() []Orphan { return w.outside().Freed }

// TableOptions says where the model's table is and how to open it: it returns o with the kind, the
// directories and the snapshot.
func (m *Model) TableOptions(o sparsetable.Options) (sparsetable.Options, error) {
	gen := m.genDir()
	dirs, err := outside.Dirs(gen)
	if err != nil {
		return o, err
	}
	o.Dir, o.SSD.Dirs = filepath.Join(gen, modelfiles.Table), dirs
	if len(dirs) > 0 {
		o.Dir = dirs[0]
	}
	original := tables.CopyOf(m.Dir, gen, dirs)
	for _, dir := range dirs {
		_, err := os.Stat(dir)
		switch {
		case err == nil:
		case original != "":
			return o, fmt.Errorf("the model in %s is a copy of that in %s, whose table is in %s and was not copied: %w; copy the directories of the table too: %s", m.Dir, original, strings.Join(dirs, ", "), err, m.copyAdvice(dirs))
		default:
			return o, fmt.Errorf("the model in %s has its table in %s: %w; mount the missing file system, or restore these directories, all of them from copies of the same time, or train again. If the model is a copy, it shared the table of the original, which is deleted with the original", m.Dir, strings.Join(dirs, ", "), err)
		}
	}
	if original != "" && o.Logger != nil {
		o.Logger.Warn("this model is a copy: its table is that of the original", "model", m.Dir, "original", original, "table", dirs, "to_copy_the_table", m.copyAdvice(dirs))
	}
	o.Kind = sparsetable.KindIn(append([]string{o.Dir}, dirs...)...)
	o.SSD.Source = m.Source
	o.SnapshotID, o.MustExist = m.TableSnapshot, true
	if o.Kind != sparsetable.KindSSD {
		files, err := sparsetable.FilesIn(o.Dir)
		if len(dirs) > 0 || len(files.Snapshots) == 0 {
			return o, errors.Join(err, faults.Damaged(o.Dir, "the model's table is missing: there is neither one on SSD (catalog) nor one in memory (snapshot-*.rows)"))
		}
		o.MemoryBytes = 0 // no limit is needed, since the table fitted when it was trained
	}
	return o, nil
}

// OpenTable opens the model's table for reading. The caller closes it, and then the model. o may
// say how much memory a table on SSD takes, and how it reads. While `aibox table compact` writes
// the table, OpenTable waits.
func (m *Model) OpenTable(ctx context.Context, o sparsetable.Options) (sparsetable.Table, error) {
	held, err := m.HoldTable(ctx, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("opening the model's table: %w", err)
	}
	defer held.Close() // once the table is open, it holds a lock of its own
	if o, err = m.TableOptions(o); err != nil {
		return nil, err
	}
	o.ReadOnly = true
	t, err := sparsetable.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("opening the model's table: %w", err)
	}
	if err := m.checkTable(t, o.Dir); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// CloneTable makes a separate table with the rows of the model's table, in the directories of to,
// as sparsetable.Clone does.
func (m *Model) CloneTable(ctx context.Context, to sparsetable.Options) (sparsetable.CloneInfo, error) {
	none := sparsetable.CloneInfo{}
	held, err := m.HoldTable(ctx, to.Logger)
	if err != nil {
		return none, fmt.Errorf("opening the model's table: %w", err)
	}
	defer held.Close()
	from, err := m.TableOptions(sparsetable.Options{Logger: to.Logger})
	if err != nil {
		return none, err
	}
	info, err := sparsetable.Clone(ctx, from, to)
	if err == nil && string(info.Snapshot.Record) != string(m.TableRecord()) {
		err = m.otherInstant(from.Dir)
	}
	if err != nil {
		return none, fmt.Errorf("cloning the model's table: %w", err)
	}
	return info, nil
}

// writerTurn is how long HoldTable waits for a process that writes the table.
const writerTurn = 10 * time.Minute

// HoldTable keeps other processes from writing the model's table until the result is closed. If a
// process is writing it, HoldTable logs that and waits. Such a process is a compaction, which
// replaces the snapshot, so HoldTable updates m.
func (m *Model) HoldTable(ctx context.Context, log *slog.Logger) (io.Closer, error) {
	o, err := m.TableOptions(sparsetable.Options{})
	if err != nil {
		return nil, err
	}
	for start, said := time.Now(), false; ; {
		held, err := sparsetable.Hold(o)
		if err == nil {
			if now, e := manifestOf(m.Dir, m.Generation); e == nil {
				m.Manifest = *now
			}
			return held, nil
		}
		if !errors.Is(err, sparsetable.ErrInUse) || time.Since(start) > writerTurn {
			return nil, err
		}
		if log != nil && !said {
			log.Info("another process is writing the model's table; waiting until it ends", "model", m.Dir)
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// copyAdvice returns the commands that give a copied model a table of its own.
func (m *Model) copyAdvice(dirs []string) string {
	gen := m.genDir()
	var from []string
	for _, dir := range dirs {
		from = append(from, humanize.ShellWord(dir+"/."))
	}
	return fmt.Sprintf("cp -r %s %s && rm %s", strings.Join(from, " "), humanize.ShellWord(filepath.Join(gen, modelfiles.Table)), humanize.ShellWord(filepath.Join(gen, outside.PlacesName)))
}

// checkTable checks that the table's snapshot and the dense file were saved at the same
// instant.
func (m *Model) checkTable(t sparsetable.Table, dir string) error {
	infos, err := t.Snapshots()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.ID == m.TableSnapshot && string(info.Record) == string(m.TableRecord()) {
			return nil
		}
	}
	return m.otherInstant(dir)
}

// otherInstant returns the error if the table's snapshot and the dense file were not saved
// together.
func (m *Model) otherInstant(dir string) error {
	return faults.Damaged(dir, fmt.Sprintf("snapshot %d was not saved together with %s", m.TableSnapshot, m.Manifest.Dense))
}
