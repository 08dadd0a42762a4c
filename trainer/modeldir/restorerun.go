package modeldir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aibox/internal/disk"
	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/faults"
	"aibox/trainer/modelfiles"
)

// CommitRun makes the restored files those of an interrupted run, which the next run resumes.
// resume is RESUME.json. Reports outside the model directory are put where outside says, by base
// name, unless there is something already.
func (r *Restoring) CommitRun(ctx context.Context, resume []byte, outside func(name string) string) error {
	if err := r.commitRun(ctx, resume, outside); err != nil {
		return fmt.Errorf("restoring a snapshot: %w", err)
	}
	return nil
}

func (r *Restoring) commitRun(ctx context.Context, resume []byte, outside func(name string) string) error {
	gen := r.w.genDir()
	if err := putOutside(filepath.Join(gen, modelfiles.Outside), outside); err != nil {
		return err
	}
	lists, err := filepath.Glob(filepath.Join(gen, modelfiles.FlatName(modelfiles.Index)+"-*"))
	if err != nil {
		return err
	}
	indexes, paths := make([][]string, len(lists)), lists
	for i, list := range lists {
		if indexes[i], err = modelfiles.IndexFiles(list); errors.Is(err, modelfiles.ErrName) {
			err = faults.Damaged(list, err.Error())
		}
		if err != nil {
			return err
		}
		paths = append(paths, indexes[i]...)
	}
	if len(indexes) > 0 {
		if _, err := sparsetable.RestoreIndex(ctx, r.tableOptions(), indexes...); err != nil {
			return err
		}
	}
	for _, path := range paths { // not needed any more
		_ = os.Remove(path)
	}
	if rows := filepath.Join(gen, modelfiles.Reports, modelfiles.Quarantine); !disk.Gone(rows) {
		if err := os.Chmod(rows, 0o600); err != nil { // they may hold personal data
			return err
		}
	}
	if err := r.sync(); err != nil {
		return err
	}
	if err := r.w.SaveResume(resume); err != nil {
		return err
	}
	_ = os.Remove(r.path(restoreName)) // it is a resumable run now
	return nil
}

// putOutside moves reports out of the generation.
func putOutside(from string, outside func(name string) string) error {
	entries, err := os.ReadDir(from)
	if disk.Gone(from) {
		return nil
	}
	for _, e := range entries {
		to := outside(e.Name())
		if to == "" || !disk.Gone(to) {
			continue
		}
		if err := (sparsetable.OSFS{}).MkdirAll(filepath.Dir(to)); err != nil {
			return err
		}
		data, err := os.Open(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		err = disk.Write(to, func(w io.Writer) error {
			_, err := io.Copy(w, data)
			return err
		})
		if err := errors.Join(err, data.Close()); err != nil {
			return err
		}
	}
	return errors.Join(err, disk.RemoveAll(from))
}
