package prioritysaves

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"aibox/internal/panics"
	"aibox/sparsetable"
	"aibox/trainer/flow"
	"aibox/trainer/mirror"
	"aibox/trainer/priority"
	"aibox/trainer/remote"
)

// Options are the options of New.
type Options struct {
	List       priority.List      // of the rows that were accessed since they were last saved
	Fraction   float64            // of the table's rows, in a save
	ChunkBytes int64              // memory for rows on their way
	Layout     sparsetable.Layout // of a row
	Table      sparsetable.Table
	TempFile   func() (*os.File, error) // makes a file without a name
	// Due reports whether a save is due, at the given time and number of local snapshots after the
	// last one.
	Due func(since time.Duration, snapshots int64) bool
	// Upload uploads a save. It may be called from another goroutine.
	Upload  func(context.Context, *Save) (*remote.Published, error)
	Earlier mirror.Summary // of the run's earlier processes
	Log     *slog.Logger
}

// Saves saves rows of one run. Its methods are for the training goroutine, unless they say
// otherwise. The methods of a nil Saves do nothing.
type Saves struct {
	*mirror.Uploader
	options Options

	begun   time.Time // time of the last save, or of the last uploaded snapshot
	skipped int64     // local snapshots since then

	tableRows atomic.Int64 // rows of the newest local snapshot
	bytes     flow.Gauge   // memory in use
	chunks    chan *rowChunk
	chunkRows int

	mu      sync.Mutex
	save    *Save // being collected or waiting; nil if there is none
	busy    bool  // a save is being uploaded
	stopped bool
}

// New starts saving rows.
func New(o Options) *Saves {
	return &Saves{
		options: o, chunks: make(chan *rowChunk), chunkRows: max(1, int(o.ChunkBytes/2)/priority.RowBytes(o.Layout)),
		Uploader: mirror.Start("a priority save", o.Earlier, o.Log),
	}
}

// Save is a save from the choice of its rows to the end of its upload. Its contents are final when
// it is uploaded.
type Save struct {
	File *os.File // without a name; has the rows in the format of package priority
	Rows int64
	Step int64 // the step at which the newest row was copied

	cancel    context.CancelFunc
	collected chan struct{} // closed when the save is final
	err       error
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

// PassBegins must be called before the first mini-batch of a pass.
func (p *Saves) PassBegins(w flow.Pulled) {
	if p != nil {
		p.options.List.Begin(w.Pass.Keys, w.Rows)
	}
}

// PassEnds must be called after the last mini-batch of a pass, whose optimizer step is given. It
// copies rows of a save.
func (p *Saves) PassEnds(w flow.Pulled, step int64) {
	if p == nil {
		return
	}
	p.options.List.End(w.Pass.Keys, w.Rows)
	p.bytes.Set(p.options.List.Bytes() + 2*int64(p.chunkRows*priority.RowBytes(p.options.Layout)))
	select {
	case c := <-p.chunks:
		p.copy(c, step)
	default:
	}
}

// Collect copies all rows of a save that has begun, without waiting for further passes. It is for
// tests.
func (p *Saves) Collect(step int64) {
	p.mu.Lock()
	s := p.save
	p.mu.Unlock()
	for s != nil {
		select {
		case c := <-p.chunks:
			p.copy(c, step)
		case <-s.collected:
			s = nil
		}
	}
}

// copy copies the rows of a chunk in their state after a pass.
func (p *Saves) copy(c *rowChunk, step int64) {
	c.copies, c.found = c.copies[:0], c.found[:0]
	for i, key := range c.keys {
		if c.rows.Found(i) {
			c.found, c.copies = append(c.found, key), append(c.copies, c.rows.Row(i)...)
		}
	}
	c.step = step
	p.options.List.Saved(c.found)
	close(c.copied)
}

// SnapshotFixed records a local snapshot that is being taken, and chooses rows if a save is due.
// With uploaded, the snapshot will be uploaded, and has all rows in their current state.
func (p *Saves) SnapshotFixed(uploaded bool) {
	if p == nil {
		return
	}
	if uploaded {
		p.abandon()
		p.options.List.Clear()
		p.begun, p.skipped = time.Now(), 0
		return
	}
	p.skipped++
	n := int64(math.Ceil(p.options.Fraction * float64(p.tableRows.Load())))
	p.options.List.Resize(n)
	if p.options.Due(time.Since(p.begun), p.skipped) {
		p.Begin(int(n))
	}
}

// Begin chooses at most n rows and starts collecting them, unless another save is not uploaded yet.
func (p *Saves) Begin(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.save != nil || p.busy || p.stopped {
		return
	}
	keys := p.options.List.Choose(n)
	if len(keys) == 0 {
		return
	}
	p.begun, p.skipped = time.Now(), 0
	ctx, cancel := context.WithCancel(context.Background())
	s := &Save{cancel: cancel, collected: make(chan struct{})}
	p.save = s
	panics.Go("collecting rows", func() {
		defer close(s.collected)
		defer cancel()
		s.err = panics.Do("collecting rows", func() error { return p.collect(ctx, s, keys) })
	})
}

// collect writes the rows of keys to a file. If ctx ends, it stops with the rows copied so far.
func (p *Saves) collect(ctx context.Context, s *Save, keys []uint64) (err error) {
	if s.File, err = p.options.TempFile(); err != nil {
		return err
	}
	n, words := p.chunkRows, p.options.Layout.Words()
	var copies []float32
	var found []uint64
	var encoded []byte
	for len(keys) > 0 && ctx.Err() == nil {
		n = min(n, len(keys))
		rows, err := p.options.Table.Pull(ctx, keys[:n], sparsetable.PullLookup|sparsetable.PullTrained)
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
		if _, err := s.File.Write(encoded); err != nil {
			return err
		}
		s.Rows += int64(len(found))
		s.Step = c.step
	}
	return nil
}

// EndCollecting ends a save that is being collected, with the rows that it has, so that none is
// pinned. It reports whether there was one.
func (p *Saves) EndCollecting() bool {
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

// abandon drops a save that is not being uploaded yet.
func (p *Saves) abandon() {
	p.EndCollecting()
	p.mu.Lock()
	s := p.save
	p.save = nil
	p.mu.Unlock()
	if s != nil {
		_ = s.close()
	}
}

func (s *Save) close() error {
	if s.File == nil {
		return nil
	}
	return s.File.Close()
}

// SnapshotSaved records a complete local snapshot, and starts uploading a save that is not newer.
func (p *Saves) SnapshotSaved(step int64) {
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
	if s.err == nil && s.Rows > 0 && s.Step > step {
		p.mu.Unlock()
		return
	}
	p.save = nil
	p.busy = s.err == nil && s.Rows > 0
	upload := p.busy
	p.mu.Unlock()
	if s.err != nil {
		p.options.Log.Warn("rows could not be saved by priority; training goes on, and others are saved when that is due", "error", s.err)
	}
	if !upload {
		_ = s.close() // the file has no name
		return
	}
	p.Offer(&mirror.Snapshot{
		Step:   s.Step,
		Upload: func(ctx context.Context) (*remote.Published, error) { return p.options.Upload(ctx, s) },
		Release: func() error {
			p.mu.Lock()
			p.busy = false
			p.mu.Unlock()
			return s.close()
		},
	})
}

// Stop ends everything. Later calls do nothing.
func (p *Saves) Stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.abandon()
	p.Uploader.Stop()
}

// Summary says what has happened to the saves; nil if there are none.
func (p *Saves) Summary() *mirror.Summary {
	if p == nil {
		return nil
	}
	s := p.Uploader.Summary()
	return &s
}

// SnapshotHas sets the number of rows of the newest local snapshot. Any goroutine may call it.
func (p *Saves) SnapshotHas(rows int64) {
	if p != nil {
		p.tableRows.Store(rows)
	}
}

// MostBytes returns the most memory that the list and rows on their way have taken.
func (p *Saves) MostBytes() int64 {
	if p == nil {
		return 0
	}
	return p.bytes.Most()
}
