package modeldir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/trainer/modeldir/internal/faults"
	"aibox/trainer/modeldir/internal/outside"
)

// A run that takes snapshots leaves RESUME.json in its generation: what is needed to resume it
// after an interruption. The file is replaced by rename, after everything that it refers to is
// durable. So after a crash at any instant, the generation has the files of the last RESUME.json,
// and perhaps others that nothing refers to. While the file exists, the generation and the table's
// directories elsewhere belong to a run that can be resumed. The commit of the model deletes it,
// and the deletion of the generation deletes it first.

const resumeName = "RESUME.json"

// resumeFile is RESUME.json.
type resumeFile struct {
	SHA256 string          `json:"sha256"` // of Resume
	Resume json.RawMessage `json:"resume"`
}

// SaveResume durably replaces RESUME.json by resume, which is JSON.
func (w *Writer) SaveResume(resume []byte) error {
	resume, err := json.Marshal(json.RawMessage(resume)) // as Marshal will write it below
	if err != nil {
		return err
	}
	data, err := json.Marshal(resumeFile{hashOf(resume), resume})
	if err != nil {
		return err
	}
	// A crash of the machine must not lose the directories above the file.
	if err := errors.Join(disk.SyncDir(w.reportsDir()), disk.SyncDir(w.dir)); err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(w.genDir(), resumeName), data)
}

// Resume returns what the interrupted run left whose generation the Writer has taken over; nil if
// the generation is new.
func (w *Writer) Resume() []byte { return w.resume }

// Interrupted returns what an interrupted run in dir left, without taking the lock; nil if there is
// none.
func Interrupted(dir string) ([]byte, error) {
	gen, err := unfinished(dir)
	if gen == "" || err != nil {
		return nil, err
	}
	return readResume(filepath.Join(dir, gen))
}

// unfinished returns the newest generation whose run can be resumed; "" if there is none.
func unfinished(dir string) (found string, err error) {
	all, err := generations(dir)
	for _, g := range all {
		if numberOf(g) < numberOf(found) || disk.Gone(filepath.Join(dir, g, resumeName)) {
			continue
		}
		switch _, err := manifestOf(dir, g); {
		case isGone(err):
			found = g
		case err != nil && !errors.As(err, new(*CorruptionError)) && !errors.Is(err, errkind.ErrNewer):
			return "", err
		}
	}
	return found, err
}

// isComplete reports whether the generation is complete; its manifest may be damaged.
func isComplete(dir, gen string) bool {
	_, err := manifestOf(dir, gen)
	return !isGone(err)
}

// isGone reports whether an error says that a file does not exist.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

func readResume(gen string) ([]byte, error) {
	path := filepath.Join(gen, resumeName)
	data, err := disk.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var f resumeFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, faults.Damaged(path, err.Error())
	}
	if hashOf(f.Resume) != f.SHA256 {
		return nil, faults.Damaged(path, "its checksum is wrong")
	}
	return f.Resume, nil
}

// takeOver makes w take over the generation of an interrupted run, if there is one and accept
// agrees. It fails if accept fails. REQUIRES: w has the lock of the directory.
func (w *Writer) takeOver(complete []Generation, accept func([]byte) (bool, error)) error {
	for _, g := range complete { // the run that committed it may have died before doing this
		if g.Fault != nil { // it may not be complete
			continue
		}
		if err := forgetResume(filepath.Join(w.dir, g.Name)); err != nil {
			w.leftovers = append(w.leftovers, err)
		}
	}
	gen, err := unfinished(w.dir)
	if gen == "" || accept == nil || err != nil {
		return err
	}
	resume, err := readResume(filepath.Join(w.dir, gen))
	if errors.As(err, new(*CorruptionError)) {
		return nil // as Interrupted says
	}
	if err != nil { // it may be readable again
		return err
	}
	agreed, err := accept(resume)
	if agreed {
		w.gen, w.resume = gen, resume
	}
	return err
}

// forgetResume makes sure that no run resumes the generation gen.
func forgetResume(gen string) error {
	path := filepath.Join(gen, resumeName)
	if disk.Gone(path) {
		return nil
	}
	err := disk.Remove(path)
	if err == nil {
		err = disk.SyncDir(gen)
	}
	return err
}

// ForgetResume makes sure that no run resumes this one.
func (w *Writer) ForgetResume() error { return forgetResume(w.genDir()) }

// CanResume reports whether another run can resume this one.
func (w *Writer) CanResume() bool { return !disk.Gone(filepath.Join(w.genDir(), resumeName)) }

// Suspend ends the run without deleting its generation, so that another run can resume it.
func (w *Writer) Suspend() { w.done = true }

// TakeTable returns the directories elsewhere that hold the table of the generation that was taken
// over, and takes their locks. It returns nil if the table is in TableDir, and fails with a
// *LostError if directories are lost.
func (w *Writer) TakeTable() ([]string, error) {
	dirs, err := outside.Dirs(w.genDir())
	if err != nil {
		return nil, err
	}
	if err := checkDirs(dirs); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := w.outside().Take(dir); err != nil {
			return nil, TableLost(dirs, err)
		}
	}
	return dirs, nil
}

// RecreateTableDirs is TakeTable for a table that has lost directories: it makes the missing ones, and
// leaves out those that cannot be used.
func (w *Writer) RecreateTableDirs() (usable, made []string, err error) {
	dirs, err := outside.Dirs(w.genDir())
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range dirs {
		if entryFailed(filepath.Dir(dir)) != nil {
			continue
		}
		missing := disk.Gone(dir)
		switch err := w.outside().Recreate(dir, dirs); {
		case err == nil && missing:
			made = append(made, dir)
			fallthrough
		case err == nil:
			usable = append(usable, dir)
		case !DiskLost(err):
			return nil, nil, err
		}
	}
	return usable, made, nil
}

// RemoveTableDirs deletes directories that RecreateTableDirs has made, of a closed table that stays as it is,
// so that the next run finds them lost again. Otherwise it would find existing directories with
// missing files.
func (w *Writer) RemoveTableDirs(made []string) error { return outside.Free(made) }

// KeepTableDirs removes from the table all directories but the given ones, because they cannot be
// used and the table needs no files there.
func (w *Writer) KeepTableDirs(dirs []string) error { return w.outside().Keep(dirs) }

// RemoveOtherDense deletes, as far as possible, the dense files that are not in keep: those of
// snapshots that nothing refers to any more.
func (w *Writer) RemoveOtherDense(keep ...string) {
	entries, _ := os.ReadDir(w.genDir())
	for _, e := range entries {
		name, _ := strings.CutSuffix(e.Name(), ".tmp")
		if !strings.HasPrefix(name, densePrefix) || e.Name() == name && slices.Contains(keep, name) {
			continue
		}
		_ = os.Remove(filepath.Join(w.genDir(), e.Name())) // it only takes space
	}
}
