package modeldir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"aibox/internal/disk"
	"aibox/trainer/modeldir/internal/outside"
)

// Remove deletes a model directory: its models with their tables, including those elsewhere, the
// files of an interrupted run, and all reports. It is no error if the directory does not exist.
// Remove fails with ErrLocked while a run writes the directory, and keeps models that a process is
// still reading.
func Remove(dir string) error {
	if disk.Gone(dir) {
		return nil
	}
	lock, err := makeAndLock(dir)
	if err != nil {
		return err
	}
	err = disk.Remove(filepath.Join(dir, ManifestName))
	if disk.Gone(filepath.Join(dir, ManifestName)) {
		err = errors.Join(removeGenerations(dir, nil)...)
	}
	if err := errors.Join(err, lock.Close()); err != nil {
		return err
	}
	return disk.RemoveAll(dir)
}

// removeGeneration deletes a generation, unless a process reads it. It starts with RESUME.json and
// the manifest, so that the generation is either complete or no model any more, and nobody starts
// to read it. Then follow the table's directories elsewhere. After an error the generation still
// exists, with the list of these directories.
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
	dirs, err := outside.AllDirs(gen)
	if err != nil {
		return fmt.Errorf("deleting %s: %w; delete the directories of its table, named *-%s-*, by hand, and then the directory itself", gen, err, filepath.Base(gen))
	}
	if err := tables.Remove(filepath.Dir(gen), gen, dirs); err != nil {
		return fmt.Errorf("deleting %s: its table in %s: %w; if this happens again, delete the table and then %[1]s by hand", gen, strings.Join(dirs, ", "), err)
	}
	if err := disk.RemoveAll(gen); err != nil {
		return fmt.Errorf("deleting %s: %w", gen, err)
	}
	return nil
}

// endGeneration removes what makes a generation a model or resumable.
func endGeneration(gen string) error {
	if err := forgetResume(gen); err != nil { // nobody may resume a partly deleted generation
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
