package modeldir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A run writes its reports into its generation. They replace those of the earlier model,
// at the top of the model directory, once the generation is the model, and not before.
// So the commit moves them there after MODEL.json names the generation. If it could not,
// because the process died or a disk was full, the next run moves them before it deletes
// anything.

// reportsName is the directory of the reports in a generation.
const reportsName = "reports"

func (w *Writer) reportsDir() string { return filepath.Join(w.genDir(), reportsName) }

// Report is where the run writes its report name (a file or a directory) until
// Commit moves it to the top of the model directory. A run that fails leaves the
// earlier reports as they were.
func (w *Writer) Report(name string) string { return filepath.Join(w.reportsDir(), name) }

// KeepReport moves a report of a run that failed to the top of the model directory
// under another name, so that people can look at it. An empty file is not kept.
func (w *Writer) KeepReport(name, as string) (path string, err error) {
	from, to := w.Report(name), filepath.Join(w.dir, as)
	if st, err := os.Stat(from); err != nil || st.Size() == 0 {
		return "", err
	}
	return to, os.Rename(from, to)
}

// publishReports moves the reports of a committed generation to the top of the model
// directory dir. If it was interrupted, another call moves the rest.
func publishReports(dir, gen string) error {
	if gen == "" {
		return nil
	}
	from := filepath.Join(dir, gen, reportsName)
	reports, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range reports {
		to := filepath.Join(dir, r.Name())
		if r.IsDir() { // a rename replaces a file, but not a directory that is not empty
			errs = append(errs, os.RemoveAll(to))
		}
		errs = append(errs, os.Rename(filepath.Join(from, r.Name()), to))
	}
	// Both directories are synced, so that after a crash of the machine each report is
	// in one of them.
	return errors.Join(append(errs, syncDir(dir), syncDir(from))...)
}

// syncTree makes all files and directories below dir durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && !entry.Type().IsRegular() {
			return nil
		}
		if err := syncDir(path); err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
		return nil
	})
}

// WriteReport writes a report into dir, the model directory of a run that failed before
// it wrote to it. It makes dir if it does not exist, and fails if another run holds the
// lock.
func WriteReport(dir, name string, data []byte) error {
	lock, err := makeAndLock(dir)
	if err != nil {
		return err
	}
	return errors.Join(WriteFile(filepath.Join(dir, name), data), lock.Close())
}
