package modeldir

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"aibox/internal/disk"
	"aibox/internal/humanize"
	"aibox/sparsetable"
)

// publish makes the generation of m the model of dir. First it updates the copy of the earlier
// model's manifest in its generation. So a crash at any moment leaves one of the two models, and
// both generations complete.
func publish(dir string, m *Manifest) error {
	if top, err := readManifest(dir); err == nil && top.Generation != m.Generation && disk.Exists(filepath.Join(dir, top.Generation)) {
		if err := top.writeOwn(dir); err != nil {
			return fmt.Errorf("keeping the earlier model: %w", err)
		}
	}
	data, err := m.encode()
	if err != nil {
		return err
	}
	if err := disk.WriteFile(filepath.Join(dir, ManifestName), data); err != nil {
		return fmt.Errorf("committing the model: %w", err)
	}
	return nil
}

// isPublished reports whether the generation gen is the model of dir.
func isPublished(dir, gen string) bool {
	top, err := readManifest(dir)
	return err == nil && top.Generation == gen
}

// unpublish withdraws the generation gen: if it is the model of dir, dir has no model afterwards.
// Its reports at the top are deleted.
func unpublish(dir, gen string) error {
	switch m, err := readManifest(dir); {
	case errors.Is(err, ErrNoModel): // an earlier call may have been interrupted
	case err != nil || m.Generation != gen:
		return nil
	default:
		path := filepath.Join(dir, ManifestName)
		if err := disk.Remove(path); err != nil {
			return err
		}
	}
	return errors.Join(removeReports(dir, gen, nil), disk.SyncDir(dir))
}

// RolledBack is the result of Rollback.
type RolledBack struct {
	From      Generation // was the model, and stays; its number is 0 if there was none
	To        Generation // if it is Published, it is the model now, even after an error
	Leftovers []error    // such as reports at the top that could not be replaced; the next run tries again
}

// Rollback makes another generation the model of dir. That is the one with the given number or, if
// number is 0, the one from which the current model was made; if that is gone or did not exist, it
// is the newest one before it. Rollback fails if files of the generation are missing or damaged; of
// the rows it checks only that the snapshot exists. If the generation is the model already,
// Rollback does what an earlier call could not do, such as replacing reports.
func Rollback(dir string, number int) (out RolledBack, err error) {
	if _, err := Generations(dir); err != nil { // before the lock file is made
		return out, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	all, err := Generations(dir)
	if err != nil {
		return out, err
	}
	if i := slices.IndexFunc(all, func(g Generation) bool { return g.Published }); i >= 0 {
		out.From = all[i]
	}
	to, err := rollbackTarget(dir, all, out.From.Number, number)
	if err != nil {
		return out, err
	}
	if to.Published {
		err = disk.SyncDir(dir) // which may be what an earlier call could not do
	} else {
		if err := check(dir, &to.Manifest); err != nil {
			return out, fmt.Errorf("generation %d cannot be the model: %w", to.Number, err)
		}
		if err = publish(dir, &to.Manifest); err != nil && !isPublished(dir, to.Name) {
			return out, err
		}
		out.From.Published, to.Published = false, true
	}
	w := &Writer{dir: dir}
	if err := w.finishPublishing(&to.Manifest); err != nil {
		w.leftovers = append(w.leftovers, err)
	}
	out.To, out.Leftovers = to, w.leftovers
	if err != nil {
		err = fmt.Errorf("generation %d is the model of %s now, but a crash of the machine may undo that; `aibox rollback %s --to %d` tries again: %w", to.Number, dir, humanize.ShellWord(dir), to.Number, err)
	}
	return out, err
}

// rollbackTarget chooses the generation that becomes the model.
func rollbackTarget(dir string, all []Generation, now, number int) (Generation, error) {
	if number != 0 {
		i := slices.IndexFunc(all, func(g Generation) bool { return g.Number == number })
		if i < 0 {
			return Generation{}, fmt.Errorf("model directory %s: %w: it has no generation %d; it has %s", dir, ErrNoModel, number, listed(all))
		}
		return all[i], all[i].Fault
	}
	if now == 0 {
		return Generation{}, fmt.Errorf("model directory %s: %w: none of its generations is published; choose one with --to: it has %s", dir, ErrNoModel, listed(all))
	}
	made := Lineage(all)
	if len(made) > 1 {
		return made[1], nil
	}
	for _, g := range all {
		duplicate := len(made) > 0 && g.Manifest.Identity() == made[0].Manifest.Identity() // one of the two was restored because its table was lost
		if g.Number < now && g.Fault == nil && !duplicate {
			return g, nil
		}
	}
	elsewhere := ""
	if m := all[slices.IndexFunc(all, func(g Generation) bool { return g.Number == now })].Manifest; m.NightDir && m.StartedFrom.ModelDir != "" {
		elsewhere = fmt.Sprintf("; the current one was made from %s: if %s is moved away, the next night starts from the latest remaining night", m.StartedFrom.Name(dir), dir)
	}
	return Generation{}, fmt.Errorf("model directory %s: %w to go back to: it has no generation before %d; it has %s%s", dir, ErrNoModel, now, listed(all), elsewhere)
}

// check reads the files of a generation, except for its rows, and checks that the snapshot of its
// table exists.
func check(dir string, m *Manifest) error {
	model, err := openGeneration(dir, m, func() (*Manifest, error) { return m, nil })
	if err != nil {
		return err
	}
	_, err = model.TableOptions(sparsetable.Options{})
	return errors.Join(err, model.Close())
}
