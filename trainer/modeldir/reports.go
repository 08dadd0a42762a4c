package modeldir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/internal/disk"
	"aibox/trainer/modelfiles"
)

// A run writes its reports into its generation, where they stay. Those of the model are also at the
// top of the model directory, as links to the same files, or as copies if the file system has no
// links. They are put there only after the generation has become the model. If that was
// interrupted, because the process died or a disk was full, the next run does it before it deletes
// anything.

func (w *Writer) reportsDir() string { return filepath.Join(w.genDir(), modelfiles.Reports) }

// Report returns the path to which the run writes the report with the given name (a file or a
// directory) until Commit puts it at the top of the model directory. A run that fails leaves the
// earlier reports as they were.
func (w *Writer) Report(name string) string { return filepath.Join(w.reportsDir(), name) }

// KeepReport moves a report of a failed run to the top of the model directory under another name,
// for people to look at. It does not keep an empty file.
func (w *Writer) KeepReport(name, as string) (path string, err error) {
	from, to := w.Report(name), filepath.Join(w.dir, as)
	if st, err := os.Stat(from); err != nil || st.Size() == 0 {
		return "", err
	}
	return to, os.Rename(from, to)
}

// publishReports puts the reports of the generation gen, which is the model, at the top of the
// model directory dir, and removes those of other generations there. If it was interrupted, another
// call does the rest.
func publishReports(dir, gen string) error {
	from := filepath.Join(dir, gen, modelfiles.Reports)
	reports, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a run of an earlier version has moved them
	}
	if err != nil {
		return err
	}
	var errs []error
	present := make(map[string]bool)
	for _, r := range reports {
		present[r.Name()] = true
		errs = append(errs, disk.LinkTree(filepath.Join(from, r.Name()), filepath.Join(dir, r.Name())))
	}
	others, err := generations(dir)
	for _, other := range others {
		errs = append(errs, removeReports(dir, other, present))
	}
	return errors.Join(append(errs, err, disk.SyncDir(dir))...)
}

// removeReports deletes the reports of a generation from the top of dir, except for those in stay.
func removeReports(dir, gen string, stay map[string]bool) error {
	var errs []error
	theirs, _ := os.ReadDir(filepath.Join(dir, gen, modelfiles.Reports)) // it need not exist
	for _, r := range theirs {
		if at := filepath.Join(dir, r.Name()); !stay[r.Name()] && disk.SameTree(filepath.Join(dir, gen, modelfiles.Reports, r.Name()), at) {
			errs = append(errs, disk.RemoveAll(at))
		}
	}
	return errors.Join(errs...)
}

// WriteReport writes a report into dir, the model directory of a run that failed before it wrote to
// it. It creates dir if necessary, and fails if another run holds the lock.
func WriteReport(dir, name string, data []byte) error {
	lock, err := makeAndLock(dir)
	if err != nil {
		return err
	}
	return errors.Join(disk.WriteFile(filepath.Join(dir, name), data), lock.Close())
}

// ReportOf returns the path of a report of a complete generation of dir.
func ReportOf(dir, gen, name string) string { return filepath.Join(dir, gen, modelfiles.Reports, name) }
