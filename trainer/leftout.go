package trainer

import (
	"slices"

	"aibox/trainer/modeldir"
)

// leaveOutFailed removes from the job the entries of sparse_table.dirs whose disks have failed, are
// read-only or are not mounted, so that a dead disk does not stop the nights until somebody
// replaces it. The model is the same, since its bits do not depend on where its table is. If no
// entry would be left, all stay, and the first use of one reports the fault. leaveOutFailed is
// called when a run begins, before anything may be restored to these entries, and again when the
// table is made, since reading all data may come between the two.
func (r *run) leaveOutFailed() {
	failed := modeldir.FailedEntries(r.job.SparseTable.Dirs)
	if len(failed) == 0 || len(failed) == len(r.job.SparseTable.Dirs) {
		return
	}
	job := *r.job // the caller's job stays as it is, for the next attempt
	job.SparseTable.Dirs = slices.DeleteFunc(slices.Clone(job.SparseTable.Dirs), func(dir string) bool {
		return slices.ContainsFunc(failed, func(f modeldir.LostDir) bool { return f.Dir == dir })
	})
	r.job, r.leftOut = &job, append(r.leftOut, failed...)
	for _, f := range failed {
		r.log.Error("the disk of a directory in sparse_table.dirs has failed, is read-only or is not mounted; this job uses only the other directories, and so do later ones until the disk is back", "dir", f.Dir, "error", f.Reason, "in_use", job.SparseTable.Dirs)
	}
}
