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

// Writer is one run's generation of a model directory. It holds the
// directory's lock until Close.
type Writer struct {
	// Keep is how many models Commit leaves in the directory, the new one included;
	// less than 1 means 1.
	Keep int

	dir  string
	gen  string // base name
	lock *dirLock
	done bool

	committed bool
	leftovers []error
	table     *outside.Run // see Writer.outside
	resume    []byte       // what the interrupted run whose generation this is left; nil: it is a new one
}

// ErrLocked says that another run is writing the directory.
var ErrLocked = faults.ErrLocked

// Create starts a generation in dir, which is made if it does not exist. It deletes the
// abandoned generations of runs that died; those that cannot be deleted are not an error,
// see Leftovers.
func Create(dir string) (*Writer, error) { return Continue(dir, nil) }

// Continue does what Create does, unless there is an interrupted run in dir and accept
// agrees to what it left: then the Writer takes over its generation, and Resume returns
// what it left. If accept does not agree, the interrupted run's generation is deleted; if
// it fails, so does Continue, and nothing is deleted.
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
		if err := finishPublishing(dir, m); err != nil { // the process that made it the model may have died before it did this
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

// Trim deletes the earlier models that Keep does not allow, except that with the identity start, from
// which the run starts. Commit deletes them too, but a run may have no room to get there: where Keep
// has become less because of that, or where files could not be deleted before. Those that cannot be
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

// Leftovers says which generations could not be deleted, and why: abandoned ones that Create found,
// and earlier models, which Trim and Commit delete. They only take space; the next run tries again. So it
// does with reports at the top that Commit could not replace.
func (w *Writer) Leftovers() []error {
	return append(slices.Clone(w.leftovers), w.outside().Leftovers...)
}

func (w *Writer) genDir() string { return filepath.Join(w.dir, w.gen) }

// Number is the number of the generation.
func (w *Writer) Number() int { return numberOf(w.gen) }

// TableDir is where the run's table keeps its snapshots.
func (w *Writer) TableDir() string { return filepath.Join(w.genDir(), modelfiles.Table) }

const densePrefix = "dense-"

// DenseName is the name of the dense file of a step.
func DenseName(step int64) string { return fmt.Sprintf(densePrefix+"%010d", step) }

// SaveDense writes the dense file name into the generation, durably.
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

// Commit makes this generation the model. m's Generation and FormatVersion are
// filled in. The caller must have closed the table, because processes that read
// MODEL.json open it. Of the earlier models, as many as Keep allows stay, those first
// from which this one was made; the others are deleted afterwards. If that fails, or the reports
// at the top of the directory cannot be replaced, it is not an error, see Leftovers. After an error
// Committed tells whether the generation is the model all the same.
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
		if top, e := readManifest(w.dir); e == nil && top.Generation == w.gen { // nothing that either model needs may be deleted
			w.done, w.committed = true, true
			return fmt.Errorf("the model is committed, but after a crash of the machine the one before it may be the model again: %w", err)
		}
		return err
	}
	w.done, w.committed, w.leftovers, w.outside().Leftovers = true, true, nil, nil
	if err := forgetResume(w.genDir()); err != nil { // the next run tries again
		w.leftovers = append(w.leftovers, err)
	}
	if err := w.finishPublishing(m); err != nil {
		return fmt.Errorf("the model is committed, but cannot be kept beside a later one: %w", err)
	}
	all, err := Generations(w.dir)
	if err != nil {
		w.leftovers = append(w.leftovers, err)
		return nil
	}
	w.leftovers = append(w.leftovers, removeGenerations(w.dir, retained(all, w.Keep))...)
	return nil
}

// finishPublishing does what follows once m is the model. That reports at the top cannot be
// replaced is no error, see Leftovers: the model counts, and has them in its generation.
func (w *Writer) finishPublishing(m *Manifest) error {
	if err := publishReports(w.dir, m.Generation); err != nil {
		w.leftovers = append(w.leftovers, fmt.Errorf("the reports in %s are not all those of this model: %w", w.dir, err))
	}
	return m.writeOwn(w.dir)
}

// Committed reports whether the generation has become the model, even if not all of its
// reports are in place.
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

// generations returns the names of the generations in dir, complete or not, the oldest
// first. It fails if they cannot all be known: what is not among them counts as deleted.
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
		info, err := os.Stat(filepath.Join(dir, e.Name())) // a link, perhaps
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			continue
		}
		out = append(out, e.Name())
	}
	return out, nil
}

// nextNumber is the number of the next generation in dir: not that of the model either, whose
// generation somebody may have moved away.
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

// removeGenerations deletes all generations except those that are kept, as far as it can.
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
