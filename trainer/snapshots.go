package trainer

import (
	"context"
	"slices"
	"sync"
	"time"

	"aibox/internal/panics"
	"aibox/trainer/pace"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// A snapshot saves the state of the run at one instant between two passes, so that another process
// can resume from it. The instant is fixed on the training goroutine, which copies the dense
// tensors and the metrics and has the table copy its pinned rows. The rest is written in the
// background (image.go), one snapshot at a time. At the end RESUME.json is replaced, and then the
// snapshot before is dropped. So the files that RESUME.json refers to are complete at any instant.
//
// A snapshot that fails does not end the run: it is counted and logged, and the one before stays
// valid.

// count counts a snapshot. The final model is saved in the same way but does not count.
func (im *image) count(s *report.Snapshots) {
	if im.Record.Final == nil {
		s.Taken++
		s.Bytes += im.bytes
		s.WriteSeconds += im.took.Seconds()
	}
}

// snapshots takes the snapshots of a run. Only the training goroutine calls its methods, except for
// giveSpace.
type snapshots struct {
	mu      sync.Mutex // held by giveSpace, which may run concurrently, and by passBegun and passTrained
	run     *run
	pace    pace.Snapshots
	summary report.Snapshots
	full    bool  // giveSpace was called: no further snapshots are taken, except for a last one
	lost    error // why the run has to end: a snapshot has shown that directories or files of the table are lost
	// tableBytes is approximately the size of the next snapshot of a table on SSD, which is at most
	// that of its cache and its index; 0 if unknown. The table may answer only after it has written
	// its buckets, so it is asked in the background.
	tableBytes int64

	writing *image // being written in the background; may be nil
	saved   *image // the last complete one; may be nil
	// older are further snapshots of the table that RESUME.json may refer to, because it is not
	// known whether it was replaced.
	older []uint64

	uploads *remotesnapshots.Uploads // to snapshots.remote; nil if there are none
}

// The stages of saving a snapshot, for tests.
const (
	stageTableSaved = "the table is saved"
	stagePrepared   = "all but RESUME.json is saved"
	stageCommitted  = "RESUME.json is saved"
	stageDropped    = "the snapshot before is dropped"
)

func (s *snapshots) at(stage string) {
	if s.run.opts.atStage != nil {
		s.run.opts.atStage(stage)
	}
}

func newSnapshots(r *run) *snapshots {
	return &snapshots{run: r, pace: pace.NewSnapshots(r.job, r.snapshotBytes)}
}

// upload begins to upload the snapshots that are taken from now on, if the job asks for that.
func (s *snapshots) upload() {
	r := s.run
	if r.job.Snapshots.Remote == "" || !s.pace.On() || r.final != nil {
		return
	}
	s.uploads = r.store().Upload(remotesnapshots.Source{
		Identity: r.identity, Started: r.started, Writer: r.models.writer, Table: r.table.Table, Dirs: r.table.dirs, Layout: r.Layout, Arrived: r.arriving.Whole,
	}, pace.NewUploads(r.job, &s.pace), s.summary)
	r.opts.Status.Uploads(s.uploads.Uploader)
}

// passBegun counts the time that it took until the rows of a pass could be changed. While a
// snapshot is being written, they are copied for it first.
func (s *snapshots) passBegun(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing != nil {
		s.summary.StallSeconds += took.Seconds()
		s.writing.stall += took
	}
}

// passTrained takes a snapshot after a pass if one is due.
func (s *snapshots) passTrained() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.Pass()
	return s.takeIfDue()
}

// epochTrained takes a snapshot after the last pass of an epoch if one is due.
func (s *snapshots) epochTrained() error { return s.takeIfDue() }

func (s *snapshots) takeIfDue() error {
	if s.writing != nil {
		select {
		case <-s.writing.done:
			s.written()
		default:
			return nil
		}
	}
	if s.lost == nil {
		s.lost = s.uploads.TableLost()
	}
	if s.lost == nil && !s.full && s.pace.Due(time.Now(), s.run.state.Examples) {
		if err := s.take(); err != nil {
			return err
		}
	}
	return s.lost
}

// take fixes a snapshot of the current state and begins to write it. It returns an error only if
// the run has to end.
func (s *snapshots) take() error {
	r := s.run
	ranges := r.ranges()
	defer ranges.EndRange(ranges.StartRange("snapshot"))
	start := time.Now()
	s.pace.Began(start, r.state.Examples)
	if err := r.engine.Export(); err != nil {
		return err
	}
	im, err := s.fix()
	if err != nil {
		s.failed(im, err)
		return context.Cause(r.grace) // nil unless the run was told to stop and its time limit has passed
	}
	stall := time.Since(start)
	s.summary.StallSeconds += stall.Seconds()
	im.Record.Snapshots.StallSeconds = s.summary.StallSeconds
	s.uploads.Report(&im.Record.Snapshots)
	s.uploads.Fixed(&im.Snapshot)
	im.stall = stall
	older := s.older
	if s.saved != nil {
		older = slices.Concat(older, s.saved.Record.TableSnapshots())
	}
	if r.table.base != 0 {
		older = append(slices.Clip(older), r.table.base)
	}
	s.writing = im
	panics.Go("saving a snapshot", func() {
		defer close(im.done)
		defer ranges.EndRange(ranges.StartRange("write snapshot"))
		start := time.Now()
		im.err = panics.Do("saving a snapshot", func() error { return s.write(im, older) })
		im.took = time.Since(start)
	})
	return nil
}

// wait waits until the snapshot that is being written is complete or has failed.
func (s *snapshots) wait() {
	if s.writing != nil {
		<-s.writing.done
		s.written()
	}
}

// written records the outcome of the snapshot that was being written.
func (s *snapshots) written() {
	im := s.writing
	s.writing = nil
	if im.err != nil {
		s.failed(im, im.err)
		return
	}
	s.pace.Saved(im.stall, im.took)
	s.tableBytes = im.next
	s.succeeded(im)
	s.lost = s.run.checkTable(nil)
}

// succeeded records a complete snapshot.
func (s *snapshots) succeeded(im *image) {
	s.saved, s.older, s.run.table.base = im, nil, 0
	im.count(&s.summary)
	if im.Record.Final == nil {
		s.run.log.Info("snapshot saved", "epoch", im.epoch, "step", im.Record.Step, "bytes", im.bytes, "seconds", im.took.Seconds())
	}
}

// failed records a snapshot that could not be taken.
func (s *snapshots) failed(im *image, err error) {
	s.summary.Failed++
	s.pace.Failed()
	if im.doubtful {
		s.older = append(s.older, im.Record.Snapshot)
	}
	s.run.log.Warn("a snapshot could not be saved; training goes on, and the next one is tried when it is due", "step", im.Record.Step, "error", err)
	s.lost = s.run.checkTable(err)
}

// saveExisting saves the current state with an existing snapshot of the table and an existing dense
// file, and drops all others. If last is not nil, only the commit of the model remains to be done.
func (s *snapshots) saveExisting(snapshot uint64, last *runstate.Final) error {
	r := s.run
	start := time.Now()
	im, err := s.image()
	if err == nil {
		if last == nil {
			s.uploads.Fixed(&im.Snapshot)
		}
		err = s.complete(im, snapshot, last)
	}
	if err != nil {
		s.failed(im, err)
		return err
	}
	im.took = time.Since(start)
	s.pace.Began(start, r.state.Examples)
	s.succeeded(im)
	if last == nil {
		s.uploads.Complete(&im.Snapshot)
	}
	r.dropOthers(&im.Record)
	s.at(stageDropped)
	return nil
}

// complete makes durable an image whose table snapshot and dense file are durable already.
func (s *snapshots) complete(im *image, snapshot uint64, last *runstate.Final) error {
	if err := s.run.engine.Export(); err != nil {
		return err
	}
	im.Record.Snapshot, im.Record.Final = snapshot, last
	if last != nil {
		im.Record.Step, im.Record.Best = last.Manifest.Step, nil
	}
	s.at(stageTableSaved)
	if err := s.prepare(im); err != nil {
		return err
	}
	s.at(stagePrepared)
	if err := s.commit(im); err != nil {
		return err
	}
	s.at(stageCommitted)
	return nil
}
