package trainer

import (
	"errors"
	"slices"

	"aibox/trainer/runstate"
)

// dropOthers drops all snapshots and dense files that x does not refer to. Those that cannot be
// dropped stay on disk.
func (r *run) dropOthers(x *runstate.Record) {
	var ids []uint64
	infos, err := r.table.Snapshots()
	for _, info := range infos {
		ids = append(ids, info.ID)
	}
	r.table.base = 0 // it is dropped, too
	if err := errors.Join(err, r.dropExcept(ids, x)); err != nil {
		r.log.Warn("an older snapshot could not be deleted; it takes space on disk", "error", err)
	}
}

// dropExcept drops the table's snapshots ids, and all dense files, except for those that x refers
// to.
func (r *run) dropExcept(ids []uint64, x *runstate.Record) error {
	r.models.writer.RemoveOtherDense(x.DenseFiles()...)
	var errs []error
	for _, id := range ids {
		if !slices.Contains(x.TableSnapshots(), id) {
			errs = append(errs, r.table.DropSnapshot(id))
		}
	}
	return errors.Join(errs...)
}

// giveSpace deletes the snapshots if cause says that there is no space left on disk, and reports
// whether that may have made room. From then on the run takes no snapshots, so it can end as it
// would without them. It may be called from any goroutine.
func (s *snapshots) giveSpace(cause error) bool {
	if !diskFull(cause) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run
	s.full = true
	s.wait()
	if s.saved == nil && len(s.older) == 0 && r.table.base == 0 {
		return false
	}
	r.log.Warn("there is no space left on disk, so the snapshots of this run are deleted and no more are taken: if the run is interrupted, it starts over", "error", cause)
	return s.forget(&runstate.Record{Best: r.state.Best})
}

// forget makes sure that no other process resumes the run, and deletes all snapshots and dense
// files except for those that keep refers to. It reports whether it succeeded.
func (s *snapshots) forget(keep *runstate.Record) bool {
	r := s.run
	if err := r.models.writer.ForgetResume(); err != nil {
		r.log.Warn("the snapshots could not be deleted", "error", err)
		return false
	}
	s.saved, s.older = nil, nil
	s.uploads.Stop()
	r.dropOthers(keep)
	return true
}

// withSpace calls do. If do finds no space on disk, withSpace deletes the snapshots and calls it
// again.
func (r *run) withSpace(do func() error) error {
	err := do()
	if err != nil && r.snapshots.giveSpace(err) {
		return do()
	}
	return err
}
