package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"aibox/internal/panics"
	"aibox/sparsetable"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
	"aibox/trainer/mirror"
	"aibox/trainer/priority"
	"aibox/trainer/remote"
	"aibox/trainer/runstate"
)

// With snapshots.priority, the rows that matter most are uploaded between two snapshots in
// snapshots.remote (CPR, Maeng et al., MLSys 2021, §4.2): r·N of N rows every r·T_save. A
// save goes through these stages, one save at a time:
//
//	chosen      with a local snapshot, on the training goroutine: keys alone
//	collected   in the background, the rows are pulled from the table, some at a time. The
//	            training goroutine copies those that are pinned by then after its next pass,
//	            when nobody changes them, and they are written to a file without a name
//	waiting     until there is a local snapshot that is at least as new as each of the rows: a
//	            run goes on from its local snapshot, and no row may be ahead of it
//	uploaded    as a publication of its own kind (package remote), committed by a rename
//
// So no two rows need be of the same step, which partial recovery does not ask for, and
// training waits for nothing but copies in memory. The model does not depend on any of this. A
// process that goes on with a run begins to count anew, and uploads a snapshot first.
//
// The rows of a save are counted as saved when they are copied; where uploading fails, it is
// tried again, and no other save begins until it has succeeded, or a snapshot is uploaded.
type prioritySaves struct {
	run  *run
	list priority.List // of the training goroutine
	*mirror.Uploader
	uploads *uploads

	begun   time.Time // the last save, or snapshot that is uploaded; of the training goroutine, as the next
	skipped int64     // local snapshots since then

	tableRows atomic.Int64 // of the newest local snapshot
	bytes     flow.Gauge   // of memory
	chunks    chan *rowChunk
	chunkRows int

	mu      sync.Mutex
	save    *prioritySave // that is collected, or waits; nil: there is none
	busy    bool          // a save is being uploaded
	stopped bool
}

// prioritySave is a save from the choice of its rows to the beginning of its upload.
type prioritySave struct {
	cancel    context.CancelFunc
	collected chan struct{} // closed when what follows is final
	err       error
	file      *os.File // without a name
	rows      int64
	step      int64 // at which the newest row was copied
}

// rowChunk is rows on their way from the table to a file.
type rowChunk struct {
	keys   []uint64
	rows   *sparsetable.WorkingSet // pinned
	copies []float32
	found  []uint64 // keys of copies
	step   int64
	copied chan struct{}
}

func newPrioritySaves(u *uploads, earlier *mirror.Summary) *prioritySaves {
	r := u.run
	if !jobparts.Prioritized(r.job) {
		return nil
	}
	list, chunks := jobparts.PriorityBytes(r.job)
	if earlier == nil {
		earlier = new(mirror.Summary)
	}
	return &prioritySaves{
		run: r, uploads: u, list: priority.New(r.job.Snapshots.Priority, r.Layout, list, r.job.Seed), chunks: make(chan *rowChunk),
		chunkRows: max(1, int(chunks/2)/priority.RowBytes(r.Layout)),
		Uploader:  mirror.Start("a priority save", *earlier, r.log),
	}
}

// passBegins, passEnds and yieldRows are hooks of a flow.
func (r *run) passBegins(w flow.Pulled) {
	if u := r.snapshots.uploads; u != nil {
		u.priority.passBegins(w)
	}
}

func (r *run) passEnds(w flow.Pulled) {
	if u := r.snapshots.uploads; u != nil {
		u.priority.passEnds(w)
	}
}

func (r *run) yieldRows() bool {
	u := r.snapshots.uploads
	return u != nil && u.priority.endCollecting()
}

func (p *prioritySaves) passBegins(w flow.Pulled) {
	if p != nil {
		p.list.Begin(w.Pass.Keys, w.Rows)
	}
}

func (p *prioritySaves) passEnds(w flow.Pulled) {
	if p == nil {
		return
	}
	p.list.End(w.Pass.Keys, w.Rows)
	p.bytes.Set(p.list.Bytes() + 2*int64(p.chunkRows*priority.RowBytes(p.run.Layout)))
	select {
	case c := <-p.chunks:
		p.copy(c)
	default:
	}
}

// copy copies the rows of a chunk, as they are after a pass.
func (p *prioritySaves) copy(c *rowChunk) {
	c.copies, c.found = c.copies[:0], c.found[:0]
	for i, key := range c.keys {
		if c.rows.Found(i) {
			c.found, c.copies = append(c.found, key), append(c.copies, c.rows.Row(i)...)
		}
	}
	c.step = p.run.state.Engine.Step
	p.list.Saved(c.found)
	close(c.copied)
}

// snapshotFixed takes note of a local snapshot that is being taken, and chooses rows if a save
// is due. With uploaded, the snapshot is to be uploaded, and has all rows as they are now.
func (p *prioritySaves) snapshotFixed(uploaded bool) {
	if p == nil {
		return
	}
	if uploaded {
		p.abandon()
		p.list.Clear()
		p.begun, p.skipped = time.Now(), 0
		return
	}
	p.skipped++
	n := int64(math.Ceil(p.run.job.Snapshots.PriorityFraction * float64(p.tableRows.Load())))
	p.list.Resize(n)
	if p.uploads.pace.PriorityDue(time.Since(p.begun), p.skipped, p.run.job.Snapshots.PriorityFraction) {
		p.begin(int(n))
	}
}

// begin chooses n rows at most and begins to collect them, unless there is a save that is not
// uploaded yet.
func (p *prioritySaves) begin(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.save != nil || p.busy || p.stopped {
		return
	}
	keys := p.list.Choose(n)
	if len(keys) == 0 {
		return
	}
	p.begun, p.skipped = time.Now(), 0
	ctx, cancel := context.WithCancel(context.Background())
	s := &prioritySave{cancel: cancel, collected: make(chan struct{})}
	p.save = s
	panics.Go("collecting rows", func() {
		defer close(s.collected)
		defer cancel()
		s.err = panics.Do("collecting rows", func() error { return p.collect(ctx, s, keys) })
	})
}

// collect writes the rows of keys to a file. If ctx ends, it ends with those that were copied.
func (p *prioritySaves) collect(ctx context.Context, s *prioritySave, keys []uint64) (err error) {
	if s.file, err = p.run.models.writer.TempFile(); err != nil {
		return err
	}
	n, words := p.chunkRows, p.run.Layout.Words()
	var copies []float32
	var found []uint64
	var encoded []byte
	for len(keys) > 0 && ctx.Err() == nil {
		n = min(n, len(keys))
		rows, err := p.run.table.Pull(ctx, keys[:n], sparsetable.PullLookup|sparsetable.PullTrained)
		switch {
		case errors.Is(err, sparsetable.ErrBudget) && n > 1:
			n /= 2 // training takes precedence
			continue
		case errors.Is(err, sparsetable.ErrBudget) || ctx.Err() != nil && err != nil:
			return nil
		case err != nil:
			return err
		}
		c := &rowChunk{keys: keys[:n], rows: rows, copies: copies, found: found, copied: make(chan struct{})}
		select {
		case p.chunks <- c:
			<-c.copied
		case <-ctx.Done():
		}
		rows.Release()
		if c.step == 0 {
			return nil
		}
		keys, copies, found = keys[n:], c.copies, c.found
		encoded = encoded[:0]
		for i, key := range found {
			encoded = priority.AppendRow(encoded, key, copies[i*words:(i+1)*words])
		}
		if _, err := s.file.Write(encoded); err != nil {
			return err
		}
		s.rows += int64(len(found))
		s.step = c.step
	}
	return nil
}

// endCollecting has a save end with the rows that it has, so that none is pinned, and reports
// whether one was being collected.
func (p *prioritySaves) endCollecting() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	s := p.save
	p.mu.Unlock()
	if s == nil {
		return false
	}
	select {
	case <-s.collected:
		return false
	default:
	}
	s.cancel()
	<-s.collected
	return true
}

// abandon forgets a save that is not being uploaded yet.
func (p *prioritySaves) abandon() {
	p.endCollecting()
	p.mu.Lock()
	s := p.save
	p.save = nil
	p.mu.Unlock()
	if s != nil {
		_ = s.close()
	}
}

func (s *prioritySave) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// snapshotSaved takes note of a local snapshot that is complete, and begins to upload a save
// that it is not older than.
func (p *prioritySaves) snapshotSaved(step int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	s := p.save
	if s == nil || p.stopped {
		p.mu.Unlock()
		return
	}
	select {
	case <-s.collected:
	default:
		p.mu.Unlock()
		return
	}
	if s.err == nil && s.rows > 0 && s.step > step {
		p.mu.Unlock()
		return
	}
	p.save = nil
	p.busy = s.err == nil && s.rows > 0
	upload := p.busy
	p.mu.Unlock()
	if s.err != nil {
		p.run.log.Warn("rows could not be saved by priority; training goes on, and others are saved when that is due", "error", s.err)
	}
	if !upload {
		_ = s.close() // it has no name
		return
	}
	p.Offer(&mirror.Snapshot{
		Step:   s.step,
		Upload: func(ctx context.Context) (*remote.Published, error) { return p.upload(ctx, s) },
		Release: func() error {
			p.mu.Lock()
			p.busy = false
			p.mu.Unlock()
			return s.close()
		},
	})
}

// unclosed is a file that is closed by somebody else.
type unclosed struct{ io.ReaderAt }

func (unclosed) Close() error { return nil }

// rowsName is the name of the file of a priority save.
const rowsName = "rows"

func (p *prioritySaves) upload(ctx context.Context, s *prioritySave) (*remote.Published, error) {
	if err := p.uploads.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer p.uploads.endTurn()
	if p.uploads.Summary().Step >= s.step {
		return nil, nil // a snapshot that is there has newer rows
	}
	r := p.run
	d, err := r.presentSnapshots("uploading rows")
	if err != nil {
		return nil, err
	}
	model, err := json.Marshal(runstate.PrioritySave{
		Format: runstate.RecordFormat, Version: r.opts.Version, Run: r.identity, Time: r.started.UTC(), Step: s.step, Kind: r.job.Snapshots.Priority, Rows: s.rows, Layout: r.Layout,
	})
	if err != nil {
		return nil, err
	}
	return d.Publish(ctx, remote.Publication{
		Job: r.job.PlainName(), Owner: r.snapshotOwner(), Identity: sha256Of(model), AiboxVersion: r.opts.Version,
		Kind: remote.PrioritySave, Run: r.runKey(), Step: s.step, Model: model, Keep: int(math.Ceil(2 / r.job.Snapshots.PriorityFraction)),
		Files: []remote.Local{{Name: rowsName, Bytes: s.rows * int64(priority.RowBytes(r.Layout)), Open: func() (remote.ReaderAt, error) { return unclosed{s.file}, nil }}},
	})
}

// stop ends everything. A later call does nothing.
func (p *prioritySaves) stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.abandon()
	p.Stop()
}

func (p *prioritySaves) summary() *mirror.Summary {
	if p == nil {
		return nil
	}
	s := p.Summary()
	return &s
}
