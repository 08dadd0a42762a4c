package modeldir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"aibox/internal/disk"
	"aibox/trainer/modeldir/internal/faults"
	"aibox/trainer/modeldir/internal/outside"
	"aibox/trainer/modelfiles"
	"aibox/trainer/tensorfile"
)

// Writer is one run's generation of a model directory. It holds the directory's lock until Close.
type Writer struct {
	// Keep is how many models Commit leaves in the directory, including the new one; less than 1
	// means 1.
	Keep int

	dir  string
	gen  string // base name
	lock *dirLock
	done bool

	committed bool
	leftovers []error
	table     *outside.Run // see Writer.outside
	resume    []byte       // what the interrupted run left whose generation this is; nil for a new generation
}

// ErrLocked says that another run is writing the directory.
var ErrLocked = faults.ErrLocked

// Create starts a generation in dir, which it makes if necessary. It deletes the abandoned
// generations of runs that died. It is no error if some cannot be deleted: see Leftovers.
func Create(dir string) (*Writer, error) { return Continue(dir, nil) }

// Continue is like Create, unless dir has an interrupted run and accept agrees to what it left.
// Then the Writer takes over that run's generation, and Resume returns what it left. If accept does
// not agree, the interrupted run's generation is deleted. If accept fails, so does Continue, and
// nothing is deleted.
func Continue(dir string, accept func(resume []byte) (bool, error)) (*Writer, error) {
	lock, err := makeAndLock(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, lock: lock}
	m, err := readManifest(dir)
	if err != nil && !errors.Is(err, ErrNoModel) {
		return nil, errors.Join(err, lock.Close())
	}
	next, err := nextNumber(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if m != nil {
		if err := w.finishPublishing(m); err != nil { // the process that published it may have died before doing this
			w.leftovers = append(w.leftovers, err)
		}
	}
	kept, err := complete(dir)
	if err == nil {
		err = w.takeOver(kept, accept)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if w.resume != nil {
		kept = append(kept, Generation{Name: w.gen})
	}
	w.leftovers = append(w.leftovers, removeGenerations(dir, kept)...)
	if w.resume != nil {
		return w, nil
	}
	w.gen = nameOf(next)
	for _, name := range []string{modelfiles.Table, modelfiles.Reports} {
		if err := os.MkdirAll(filepath.Join(w.genDir(), name), 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("model directory: %w", err), w.Close())
		}
	}
	if err := disk.WriteFile(filepath.Join(w.genDir(), lockName), nil); err != nil { // made now, for readers that may not create files here
		return nil, errors.Join(fmt.Errorf("model directory: %w", err), w.Close())
	}
	return w, nil
}

// Trim deletes the earlier models that Keep does not allow, except the one with the identity start,
// from which the run starts. Commit deletes them too, but a run may not have the space to get there:
// if Keep was lowered for that reason, or if files could not be deleted before. Models that cannot be
// deleted are no error, see Leftovers.
func (w *Writer) Trim(start string) {
	all, err := complete(w.dir)
	if err != nil {
		w.leftovers = append(w.leftovers, err)
		return
	}
	kept := append(retained(all, w.Keep), Generation{Name: w.gen})
	for _, g := range all {
		if g.Manifest.Identity() == start {
			kept = append(kept, g)
		}
	}
	w.leftovers = append(w.leftovers, removeGenerations(w.dir, kept)...)
}

// Leftovers returns why some generations could not be deleted: abandoned ones that Create found,
// and earlier models, which Trim and Commit delete. They only take space, and the next run tries
// again. It also returns why reports at the top could not be replaced by Commit, which the next run
// tries again, too.
func (w *Writer) Leftovers() []error {
	return append(slices.Clone(w.leftovers), w.outside().Leftovers...)
}

func (w *Writer) genDir() string { return filepath.Join(w.dir, w.gen) }

// Number returns the number of the generation.
func (w *Writer) Number() int { return numberOf(w.gen) }

// TableDir returns the directory for snapshots of the run's table.
func (w *Writer) TableDir() string { return filepath.Join(w.genDir(), modelfiles.Table) }

const densePrefix = "dense-"

// DenseName returns the name of the dense file of a step.
func DenseName(step int64) string { return fmt.Sprintf(densePrefix+"%010d", step) }

// SaveDense durably writes the dense file name into the generation.
func (w *Writer) SaveDense(name string, tensors []tensorfile.Tensor) error {
	path := filepath.Join(w.genDir(), name)
	if err := disk.Write(path, func(f io.Writer) error { return tensorfile.Write(f, tensors) }); err != nil {
		return fmt.Errorf("saving dense parameters: %w", err)
	}
	return nil
}

// ReadDense reads a dense file that SaveDense wrote.
func (w *Writer) ReadDense(name string) ([]tensorfile.Tensor, error) {
	return readDenseFile(filepath.Join(w.genDir(), name))
}

// Commit makes this generation the model. It fills in m's Generation, FormatVersion, ID and
// checksums. The caller must have closed the table, because processes that read MODEL.json open it.
// As many models as Keep allows stay, first those from which this one was made; the others are
// deleted afterwards. It is no error if that fails or the reports at the top of the directory
// cannot be replaced: see Leftovers. After an error, Committed tells whether the generation is the
// model nevertheless.
func (w *Writer) Commit(m *Manifest, job, statistics []byte) error {
	m.FormatVersion, m.Generation, m.ID = FormatVersion, w.gen, rand.Text()
	m.JobSHA256, m.StatisticsSHA256 = hashOf(job), hashOf(statistics)
	for name, data := range map[string][]byte{modelfiles.Job: job, modelfiles.Statistics: statistics} {
		if err := disk.WriteFile(filepath.Join(w.genDir(), name), data); err != nil {
			return fmt.Errorf("saving the model: %w", err)
		}
	}
	if err := errors.Join(disk.SyncTree(w.reportsDir()), disk.SyncDir(w.genDir()), disk.SyncDir(w.dir)); err != nil {
		return fmt.Errorf("saving the model: %w", err)
	}
	if err := publish(w.dir, m); err != nil {
		if isPublished(w.dir, w.gen) { // nothing that either model needs may be deleted
			w.done, w.committed = true, true
			return fmt.Errorf("the model is committed, but if the machine crashes, the previous model may be the current one again: %w", err)
		}
		return err
	}
	w.done, w.committed, w.leftovers, w.outside().Leftovers = true, true, nil, nil
	if err := forgetResume(w.genDir()); err != nil { // the next run tries again
		w.leftovers = append(w.leftovers, err)
	}
	if err := w.finishPublishing(m); err != nil {
		return fmt.Errorf("the model is committed, but cannot be kept once a later one is committed: %w", err)
	}
	all, err := Generations(w.dir)
	if err != nil {
		w.leftovers = append(w.leftovers, err)
		return nil
	}
	w.leftovers = append(w.leftovers, removeGenerations(w.dir, retained(all, w.Keep))...)
	return nil
}

// finishPublishing does the work that remains once m is the model: its generation gets its copy of
// the manifest, and its reports are put at the top. If a crash prevents that, the next run does it.
// It is no error if reports cannot be replaced (see Leftovers): the model counts, and has them in
// its generation.
func (w *Writer) finishPublishing(m *Manifest) error {
	if err := publishReports(w.dir, m.Generation); err != nil {
		w.leftovers = append(w.leftovers, fmt.Errorf("not all reports in %s are those of this model: %w", w.dir, err))
	}
	return m.writeOwn(w.dir)
}

// Committed reports whether the generation has become the model, even if not all of its reports are
// in place.
func (w *Writer) Committed() bool { return w.committed }

// Discard deletes the generation, unless it was committed. The lock stays.
func (w *Writer) Discard() error {
	if w.done {
		return nil
	}
	w.done = true
	return removeGeneration(w.genDir())
}

// Close releases the lock. A generation that was not committed is deleted.
func (w *Writer) Close() error {
	if w.lock == nil {
		return nil
	}
	err := w.Discard()
	w.outside().Close()
	err = errors.Join(err, w.lock.Close())
	w.lock = nil
	return err
}

// generations returns the names of all generations in dir, complete or not, the oldest first. It
// fails if it cannot list all of them, since one that is not listed counts as deleted.
func generations(dir string) ([]string, error) {
	entries, err := disk.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("model directory: %w", err)
	}
	var out []string
	for _, e := range entries {
		if numberOf(e.Name()) == 0 {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, e.Name())) // it may be a symbolic link
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			continue
		}
		out = append(out, e.Name())
	}
	return out, nil
}

// nextNumber returns the number of the next generation in dir. It is not that of the model either,
// whose generation may have been moved away.
func nextNumber(dir string) (int, error) {
	next := 1
	if top, err := readManifest(dir); err == nil {
		next = top.Number() + 1
	}
	all, err := generations(dir)
	for _, g := range all {
		next = max(next, numberOf(g)+1)
	}
	return next, err
}

// complete returns the complete generations of dir, of which there may be none.
func complete(dir string) ([]Generation, error) {
	all, err := Generations(dir)
	if errors.Is(err, ErrNoModel) {
		err = nil
	}
	return all, err
}

// removeGenerations deletes, as far as possible, all generations that are not in kept.
func removeGenerations(dir string, kept []Generation) (errs []error) {
	all, err := generations(dir)
	if err != nil {
		return []error{err}
	}
	for _, g := range all {
		if slices.ContainsFunc(kept, func(k Generation) bool { return k.Name == g }) {
			continue
		}
		if err := removeGeneration(filepath.Join(dir, g)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
