package modeldir

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"aibox/internal/disk"
	"aibox/internal/humanize"
	"aibox/sparsetable"
	"aibox/trainer/modelfiles"
)

// A generation's table may be in directories outside of the model directory, one on each
// SSD of sparse_table.dirs, each with a unique name. They are listed in the generation
// before they are made, so that a run that deletes a generation, complete or not, knows
// which directories to delete with it. Their parents are made before the list, so that
// it never names a directory that cannot exist.

// placesName is the file in the generation that holds the list.
const placesName = "table-dirs.json"

type places struct {
	Dirs []string `json:"dirs"` // absolute
}

// placeName is how PlaceTable names a directory: MODEL-gen-000002-1f3a9c2e.
var placeName = regexp.MustCompile(`-(gen-[0-9]{6,})-[0-9a-f]{8}$`)

// PlaceTable makes a directory for the run's table in each of dirs, which it creates if
// they are missing, and returns the absolute paths of the new directories. They belong
// to the generation and are deleted with it. PlaceTable is called once, before the table
// is made; without dirs it does nothing, and the table is in TableDir.
func (w *Writer) PlaceTable(dirs []string) ([]string, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	model, err := filepath.Abs(w.dir)
	if err != nil {
		return nil, err
	}
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%s-%s", filepath.Base(model), w.gen, hex.EncodeToString(id[:]))
	var p places
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if err := (sparsetable.OSFS{}).MkdirAll(dir); err != nil {
			return nil, err
		}
		p.Dirs = append(p.Dirs, filepath.Join(dir, name))
	}
	if err := w.writePlaces(p); err != nil {
		return nil, err
	}
	for _, dir := range p.Dirs {
		if err := w.makeTableDir(dir, p.Dirs); err != nil {
			if errors.Is(err, fs.ErrExist) {
				err = fmt.Errorf("%w: are two of %s the same directory?", err, strings.Join(dirs, ", "))
			}
			return nil, err
		}
	}
	return p.Dirs, nil
}

// CheckPlaces fails if no directory of a table could be made in one of dirs.
func CheckPlaces(dirs []string) error {
	for _, dir := range dirs {
		probe := filepath.Join(dir, ".aibox-probe")
		if err := errors.Join((sparsetable.OSFS{}).MkdirAll(dir), disk.WriteFile(probe, nil), os.Remove(probe)); err != nil {
			return err
		}
	}
	return nil
}

// makeTableDir makes one of the directories of the run's table, and frees those that
// killed runs left beside it.
func (w *Writer) makeTableDir(dir string, all []string) error {
	beside := filepath.Dir(dir)
	parent, err := lockParent(beside)
	if err != nil {
		return err
	}
	defer parent.Close()
	w.freeKilled(beside)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	lock, err := lockRun(dir)
	if err != nil {
		return err
	}
	if lock == nil {
		return fmt.Errorf("%s: %w", dir, ErrLocked) // dir is new, so only another process can have locked it
	}
	w.tableLocks = append(w.tableLocks, lock)
	if err := w.writeOwner(dir, all); err != nil {
		return err
	}
	return disk.SyncDir(beside)
}

func (w *Writer) writePlaces(p places) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(w.genDir(), placesName), append(data, '\n'))
}

func (w *Writer) writeOwner(dir string, all []string) error {
	o := &owner{ModelDir: disk.RealDir(w.dir), Generation: w.gen, Dirs: all}
	return o.write(dir)
}

// tableDirs returns the directories of the table of the generation in gen, nil if the
// table is in the generation itself.
func tableDirs(gen string) ([]string, error) {
	path := filepath.Join(gen, placesName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p places
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, &CorruptionError{path, noOffset, err.Error()}
	}
	if len(p.Dirs) == 0 {
		return nil, &CorruptionError{path, noOffset, "it names no directory"}
	}
	for _, dir := range p.Dirs {
		// Only a directory that PlaceTable has named may be deleted, whatever the file
		// says.
		m := placeName.FindStringSubmatch(filepath.Base(dir))
		if !filepath.IsAbs(dir) || dir != filepath.Clean(dir) || m == nil || m[1] != filepath.Base(gen) {
			return nil, &CorruptionError{path, noOffset, fmt.Sprintf("%q is not a directory of a table of this generation", dir)}
		}
	}
	return p.Dirs, nil
}

// removeGeneration deletes a generation, unless a process reads it. It begins with what a
// run needs to go on with it, and its manifest, so that it is complete or no model any
// more, and nobody begins to read it; then come the table's directories elsewhere. After
// an error the generation still exists, with the list of these directories.
func removeGeneration(gen string) error {
	if err := endGeneration(gen); err != nil {
		return fmt.Errorf("deleting %s: %w", gen, err)
	}
	lock, err := lockRemoving(gen)
	if err != nil {
		return fmt.Errorf("%s is kept: %w", gen, err)
	}
	if lock != nil {
		defer lock.Close()
	}
	dirs, err := tableDirs(gen)
	if err != nil {
		return fmt.Errorf("deleting %s: %w; delete the directories of its table, named *-%s-*, by hand, and then the directory itself", gen, err, filepath.Base(gen))
	}
	if err := removeTableDirs(filepath.Dir(gen), gen, dirs); err != nil {
		return fmt.Errorf("deleting %s: its table in %s: %w; if this happens again, delete the table and then %[1]s by hand", gen, strings.Join(dirs, ", "), err)
	}
	if err := disk.RemoveAll(gen); err != nil {
		return fmt.Errorf("deleting %s: %w", gen, err)
	}
	return nil
}

// endGeneration makes a generation one that is no model, and with which nobody goes on.
func endGeneration(gen string) error {
	if err := forgetResume(gen); err != nil { // no run goes on with a part of a generation
		return err
	}
	if err := os.Remove(filepath.Join(gen, discardedName)); err != nil && !disk.Gone(filepath.Join(gen, discardedName)) {
		return err
	}
	manifest := filepath.Join(gen, ManifestName)
	if err := disk.Remove(manifest); err == nil {
		return disk.SyncDir(gen)
	} else if !disk.Gone(manifest) {
		return err
	}
	return nil
}

// TableOptions says where the model's table is and how to open it: o with the
// kind, the directories and the snapshot.
func (m *Model) TableOptions(o sparsetable.Options) (sparsetable.Options, error) {
	gen := filepath.Join(m.Dir, m.Generation)
	dirs, err := tableDirs(gen)
	if err != nil {
		return o, err
	}
	o.Dir, o.SSD.Dirs = filepath.Join(gen, modelfiles.Table), dirs
	if len(dirs) > 0 {
		o.Dir = dirs[0]
	}
	original := copyOf(m.Dir, gen, dirs)
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
			return o, errors.Join(err, &CorruptionError{o.Dir, noOffset, "the model's table is missing: there is neither one on SSD (catalog) nor one in memory (snapshot-*.rows)"})
		}
		o.MemoryBytes = 0 // no limit is needed, since the table fitted when it was trained
	}
	return o, nil
}

// OpenTable opens the model's table for reading; the caller closes it, and then
// the model. o may say how much memory a table on SSD takes, and how it reads.
// While `aibox table compact` writes the table, OpenTable waits.
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

// CloneTable makes, in the directories of to, a table of its own with the rows of the
// model's table, as sparsetable.Clone does.
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

// HoldTable keeps other processes from writing the model's table until the result is
// closed. If a process is writing it, HoldTable logs that and waits. Such a process is a
// compaction, which replaces the snapshot; m is updated to the current one.
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
			log.Info("another process writes the model's table; waiting until it ends", "model", m.Dir)
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// copyAdvice are the commands that give a copied model a table of its own.
func (m *Model) copyAdvice(dirs []string) string {
	gen := filepath.Join(m.Dir, m.Generation)
	var from []string
	for _, dir := range dirs {
		from = append(from, humanize.ShellWord(dir+"/."))
	}
	return fmt.Sprintf("cp -r %s %s && rm %s", strings.Join(from, " "), humanize.ShellWord(filepath.Join(gen, modelfiles.Table)), humanize.ShellWord(filepath.Join(gen, placesName)))
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

// otherInstant says that the table's snapshot and the dense file do not belong together.
func (m *Model) otherInstant(dir string) error {
	return &CorruptionError{dir, noOffset, fmt.Sprintf("snapshot %d was not saved together with %s", m.TableSnapshot, m.Manifest.Dense)}
}
