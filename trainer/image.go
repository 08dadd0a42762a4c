package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/runstate"
	"aibox/trainer/tensorfile"
)

// image is the content of a snapshot. Once it is fixed, it no longer changes with the run.
type image struct {
	remotesnapshots.Snapshot
	epoch   int
	tensors []tensorfile.Tensor          // copies; nil if the dense file exists already
	pending *sparsetable.PendingSnapshot // nil if the table's snapshot exists already
	stall   time.Duration                // time for which training waited

	done     chan struct{} // closed when Data and the fields below are final
	err      error
	doubtful bool // RESUME.json may have been replaced despite err

	bytes int64
	took  time.Duration
	next  int64 // see snapshots.tableBytes
}

// fix copies everything in the current state that may change, and fixes the snapshot of the table.
// The result is never nil, even with an error.
func (s *snapshots) fix() (*image, error) {
	r := s.run
	im, err := s.image()
	if err != nil {
		return im, err
	}
	if err := s.room(); err != nil {
		return im, err
	}
	for _, t := range r.tensors(im.Record.Step) {
		t.Data = slices.Clone(t.Data)
		im.tensors = append(im.tensors, t)
	}
	if im.pending, err = r.table.Snapshot(r.grace, im.Record.TableRecord()); err != nil {
		return im, fmt.Errorf("table snapshot: %w", err)
	}
	return im, nil
}

// image describes the current state, except for the snapshot of the table. Large parts are copied
// here and encoded in the background.
func (s *snapshots) image() (*image, error) {
	r := s.run
	im := &image{done: make(chan struct{}), epoch: r.state.Epoch}
	im.Record = runstate.Record{
		Format: runstate.RecordFormat, Version: r.opts.Version, Run: r.identity, Day: r.table.day, Converted: r.table.converted,
		Step: r.state.Engine.Step, Seconds: r.elapsed(), Snapshots: s.summary, Resumed: r.resumed, Recoveries: r.recoveries,
		Online: r.state.Online.Clone(), Reader: r.state.Reader, Best: r.state.Best,
	}
	var err error
	if im.Record.Reports, err = r.reports.Sizes(); err != nil {
		return im, err
	}
	im.Quarantine = r.state.QuarantineBytes()
	state := r.state
	state.Online, state.Reader = runstate.Online{}, nil
	if state.Training(state.Epoch) {
		state.Spent = state.Spent.Plus(r.clock.Now())
	}
	im.Record.State, err = state.Encode()
	return im, err
}

// write makes an image durable, and drops those of the table's snapshots in older that it does not
// refer to. It runs in the background.
func (s *snapshots) write(im *image, older []uint64) error {
	r := s.run
	info, err := im.pending.Wait()
	if err != nil {
		return fmt.Errorf("table snapshot: %w", err)
	}
	im.Record.Snapshot, im.bytes = info.ID, info.Bytes
	s.uploads.Rows(info.Rows)
	if r.job.SparseTable.Kind == sparsetable.KindSSD {
		im.next = r.tableBytes()
	}
	s.at(stageTableSaved)
	if err := s.prepare(im); err != nil {
		return errors.Join(err, r.table.DropSnapshot(info.ID))
	}
	s.at(stagePrepared)
	if err := s.commit(im); err != nil {
		return err
	}
	s.at(stageCommitted)
	s.uploads.Complete(&im.Snapshot)
	if err := r.dropExcept(older, &im.Record); err != nil {
		r.log.Warn("an older snapshot could not be deleted; it takes space on disk", "error", err)
	}
	s.at(stageDropped)
	return nil
}

// prepare makes everything of an image durable except for RESUME.json and the table's snapshot,
// which is durable already.
func (s *snapshots) prepare(im *image) error {
	if im.tensors != nil {
		if err := s.run.models.writer.SaveDense(modeldir.DenseName(im.Record.Step), im.tensors); err != nil {
			return err
		}
	}
	for _, t := range im.tensors {
		im.bytes += 4 * int64(len(t.Data))
	}
	im.tensors = nil
	return errors.Join(s.run.reports.Sync(), s.run.data.Quarantine.Sync())
}

// commit makes an image the one that another process resumes from.
func (s *snapshots) commit(im *image) error {
	im.count(&im.Record.Snapshots)
	data, err := json.Marshal(&im.Record)
	if err != nil {
		return err
	}
	im.bytes += int64(len(data))
	im.Data = data
	if err := s.run.models.writer.SaveResume(data); err != nil {
		im.doubtful = true
		return fmt.Errorf("saving where training is: %w", err)
	}
	return nil
}
