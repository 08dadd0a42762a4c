package report

import (
	"math"
	"sync"
	"time"

	"aibox/internal/process"
	"aibox/pipeline"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/mirror"
	"aibox/trainer/remote"
)

// Phase is what a job is doing.
type Phase string

// The phases of a job, in order; training and evaluating alternate.
const (
	PhaseStarting   Phase = "starting"
	PhaseScanning   Phase = "scanning"
	PhaseTraining   Phase = "training"
	PhaseEvaluating Phase = "evaluating"
	PhasePredicting Phase = "predicting"
	PhaseSaving     Phase = "saving"
)

// Status lets other goroutines see how far a job is while it runs. The zero value is
// ready for use; all methods may be called from any goroutine.
type Status struct {
	mu struct {
		sync.Mutex
		View
		reader *reader.Reader
		pipe   *pipeline.Pipeline
		table  sparsetable.Table
		since  time.Time // start of the phase
		upload *mirror.Uploader
		lost   float64
		coming *remote.Arriving
		engine engine.Engine
	}
}

// View is the state of a Status at one time.
type View struct {
	Phase        Phase
	Epoch        int     // 1-based; 0 outside of training
	Epochs       int     // planned
	Step         int64   // optimizer steps
	Examples     int64   // in this phase
	MaxExamples  int64   // the phase ends after so many; 0: when the data ends
	Loss         float64 // online log loss since the last metrics line
	AUC          float64 // online AUC of this epoch so far; NaN when undefined
	BadRows      int64
	BytesRead    int64 // of BytesTotal, in this phase
	BytesTotal   int64
	PhaseElapsed time.Duration
	// These are what of Examples and BytesRead an earlier process did, from which this one goes on.
	ExamplesBefore, BytesBefore int64
	Stages                      []pipeline.StageStats
	Table                       sparsetable.Stats
	// ResidentBytes is what the whole process takes in memory now; 0 if that is unknown.
	ResidentBytes int64
	LostSamples   float64 // portion of lost samples, with partial recovery
	// Uploads is what became of snapshots in snapshots.remote; nil: none are uploaded.
	Uploads *mirror.Summary
	// Arriving is how far the files of a snapshot of snapshots.remote are; nil: none is used.
	Arriving *remote.ArrivingStats
	Devices  []Device // that compute; nil: the processors of the host do
}

// View returns the current state.
func (s *Status) View() View {
	s.mu.Lock()
	v, r, p, t, u, a, e := s.mu.View, s.mu.reader, s.mu.pipe, s.mu.table, s.mu.upload, s.mu.coming, s.mu.engine
	if !s.mu.since.IsZero() {
		v.PhaseElapsed = time.Since(s.mu.since)
	}
	v.LostSamples = s.mu.lost
	s.mu.Unlock()
	if r != nil {
		c := r.Counts()
		v.BadRows, v.BytesTotal = c.BadRows, c.BytesTotal
	}
	if p != nil {
		v.Stages = p.Stats()
	}
	if t != nil {
		v.Table = t.Stats()
	}
	if u != nil {
		uploads := u.Summary()
		v.Uploads = &uploads
	}
	if a != nil {
		stats := a.Stats()
		v.Arriving = &stats
	}
	v.Devices = DevicesOf(e)
	v.ResidentBytes = process.MemoryOrZero().Now
	return v
}

// Begin enters a phase. Where the reader begins at a cursor, what is before it counts as read by an
// earlier process.
func (s *Status) Begin(phase Phase, epoch, epochs int, r *reader.Reader, t sparsetable.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.View = View{Phase: phase, Epoch: epoch, Epochs: epochs, Step: s.mu.Step, Loss: math.NaN(), AUC: math.NaN()}
	if r != nil {
		s.mu.BytesRead = r.Counts().BytesRead
		s.mu.BytesBefore = s.mu.BytesRead
	}
	s.mu.reader, s.mu.table, s.mu.pipe = r, t, nil
	s.mu.since = time.Now()
}

// Resume says how many steps the run has made, and how many examples of the phase an earlier
// process has trained.
func (s *Status) Resume(step, examples int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.Step, s.mu.Examples, s.mu.ExamplesBefore = step, examples, examples
}

// Limit says that the phase ends after so many examples; 0: no limit.
func (s *Status) Limit(examples int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.MaxExamples = examples
}

// End leaves the phase, since the reader and the table are about to be closed.
func (s *Status) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.reader, s.mu.table, s.mu.pipe = nil, nil, nil
}

// Lost says which portion of its samples the run has lost.
func (s *Status) Lost(portion float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lost = portion
}

// Uploads says what uploads the snapshots of the run.
func (s *Status) Uploads(u *mirror.Uploader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.upload = u
}

// Arrives says what fetches the files of the table.
func (s *Status) Arrives(a *remote.Arriving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.coming = a
}

// Computes says which engine computes.
func (s *Status) Computes(e engine.Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.engine = e
}

// Pipeline says through which pipeline the phase reads.
func (s *Status) Pipeline(p *pipeline.Pipeline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.pipe = p
}

// Batch counts a mini-batch, after the optimizer step of that number.
func (s *Status) Batch(step int64, examples int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.Step = step
	s.mu.Examples += int64(examples)
}

// Metrics says how good the model is: log loss since the line before, and AUC of the epoch so far.
func (s *Status) Metrics(loss, auc float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.Loss, s.mu.AUC = loss, auc
}

// Bytes says how many bytes of the phase are read and used.
func (s *Status) Bytes(done int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.BytesRead = done
}
