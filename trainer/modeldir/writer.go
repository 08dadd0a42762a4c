package modeldir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"aibox/internal/errkind"
)

// Writer is one run's generation of a model directory. It holds the
// directory's lock until Close.
type Writer struct {
	dir  string
	gen  string // base name
	lock *os.File
	done bool

	reports   []string // names that Commit publishes
	leftovers []error
}

// ErrLocked: another run is writing the directory.
var ErrLocked = errkind.New(errkind.Locked, "model directory is locked")

// Create starts a generation in dir, which is made if it does not exist.
// Generations that nothing refers to, left by runs that died, are deleted; those
// that cannot be are no obstacle, see Leftovers.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("model directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, lock: lock}
	next := 1
	keep := ""
	m, err := readManifest(dir)
	if err == nil {
		keep = m.Generation
	} else if !errors.Is(err, ErrNoModel) {
		lock.Close()
		return nil, err
	}
	for _, g := range generations(dir) {
		var n int
		if _, err := fmt.Sscanf(g, "gen-%d", &n); err == nil && n >= next {
			next = n + 1
		}
	}
	w.leftovers = removeGenerations(dir, keep)
	w.gen = fmt.Sprintf("gen-%06d", next)
	if err := os.MkdirAll(filepath.Join(w.genDir(), tableName), 0o755); err != nil {
		lock.Close()
		return nil, fmt.Errorf("model directory: %w", err)
	}
	if err := WriteFile(filepath.Join(w.genDir(), lockName), nil); err != nil { // for those who may not write here
		lock.Close()
		return nil, fmt.Errorf("model directory: %w", err)
	}
	return w, nil
}

// Leftovers says which generations could not be deleted, and why: abandoned ones by
// Create, then by Commit that of the earlier model. They do no harm but take
// space; the next run tries again.
func (w *Writer) Leftovers() []error { return w.leftovers }

func (w *Writer) genDir() string { return filepath.Join(w.dir, w.gen) }

// TableDir is where the run's table keeps its snapshots.
func (w *Writer) TableDir() string { return filepath.Join(w.genDir(), tableName) }

// Report is where the run writes its report name (a file or a directory) until
// Commit moves it to the top of the model directory, in place of the earlier
// model's. A run that fails leaves the earlier reports as they were.
func (w *Writer) Report(name string) string {
	w.reports = append(w.reports, name)
	return filepath.Join(w.genDir(), name)
}

// KeepReport moves a report of a run that failed to the top of the model
// directory under another name, where somebody may want to look at it. An empty
// file is not kept.
func (w *Writer) KeepReport(name, as string) (path string, err error) {
	from, to := filepath.Join(w.genDir(), name), filepath.Join(w.dir, as)
	if st, err := os.Stat(from); err != nil || st.Size() == 0 {
		return "", err
	}
	return to, os.Rename(from, to)
}

// DenseName is the name of the dense file of a step.
func DenseName(step int64) string { return fmt.Sprintf("dense-%010d", step) }

// SaveDense writes the dense file name into the generation, durably.
func (w *Writer) SaveDense(name string, tensors []Tensor) error {
	path := filepath.Join(w.genDir(), name)
	if err := writeFile(path, func(f io.Writer) error { return WriteDense(f, tensors) }); err != nil {
		return fmt.Errorf("saving dense parameters: %w", err)
	}
	return nil
}

// ReadDense reads a dense file that SaveDense wrote.
func (w *Writer) ReadDense(name string) ([]Tensor, error) {
	return readDenseFile(filepath.Join(w.genDir(), name))
}

// RemoveDense deletes a dense file that was superseded before the commit.
func (w *Writer) RemoveDense(name string) { os.Remove(filepath.Join(w.genDir(), name)) }

// Commit makes this generation the model. m's Generation and FormatVersion are
// filled in. The caller has closed the table: whoever reads MODEL.json opens it.
// The earlier generation is deleted afterwards; failing to delete it is no error,
// see Leftovers.
func (w *Writer) Commit(m *Manifest, job, statistics []byte) error {
	m.FormatVersion, m.Generation = FormatVersion, w.gen
	m.JobSHA256, m.StatisticsSHA256 = hashOf(job), hashOf(statistics)
	for name, data := range map[string][]byte{jobName: job, statisticsName: statistics} {
		if err := WriteFile(filepath.Join(w.genDir(), name), data); err != nil {
			return fmt.Errorf("saving the model: %w", err)
		}
	}
	if err := syncDir(w.dir); err != nil {
		return fmt.Errorf("saving the model: %w", err)
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(w.dir, ManifestName), append(data, '\n')); err != nil {
		return fmt.Errorf("committing the model: %w", err)
	}
	w.done = true
	for _, name := range w.reports {
		if err := w.publish(name); err != nil {
			return fmt.Errorf("the model is committed, but its report %s is not in place: %w", name, err)
		}
	}
	w.leftovers = removeGenerations(w.dir, w.gen)
	return nil
}

func (w *Writer) publish(name string) error {
	to := filepath.Join(w.dir, name)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(filepath.Join(w.genDir(), name), to)
}

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
	w.lock.Close()
	w.lock = nil
	return err
}

// WriteReport writes a report of a run that never wrote to dir, the model directory
// of its job, unless there is no such directory. It fails when another run has the
// lock.
func WriteReport(dir, name string, data []byte) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(WriteFile(filepath.Join(dir, name), data), lock.Close())
}

func generations(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "gen-") {
			out = append(out, e.Name())
		}
	}
	return out
}

// removeGenerations deletes all generations but keep, as far as it can.
func removeGenerations(dir, keep string) (errs []error) {
	for _, g := range generations(dir) {
		if g == keep {
			continue
		}
		if err := removeGeneration(filepath.Join(dir, g)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
