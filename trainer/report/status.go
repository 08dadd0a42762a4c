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

// Phases of a job, in order. Training and evaluating alternate.
const (
	PhaseStarting   Phase = "starting"
	PhaseScanning   Phase = "scanning"
	PhaseTraining   Phase = "training"
	PhaseEvaluating Phase = "evaluating"
	PhasePredicting Phase = "predicting"
	PhaseSaving     Phase = "saving"
)

// Status lets other goroutines see the progress of a running job. The zero value is ready for use.
// All methods may be called from any goroutine.
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
	MaxExamples  int64   // the phase ends after this many; 0 if it ends with the data
	Loss         float64 // online log loss since the last metrics line
	AUC          float64 // online AUC of this epoch so far; NaN if undefined
	BadRows      int64
	BytesRead    int64 // of BytesTotal, in this phase
	BytesTotal   int64
	PhaseElapsed time.Duration
	// The parts of Examples and BytesRead that are the work of an earlier process, which this one
	// resumes.
	ExamplesBefore, BytesBefore int64
	Stages                      []pipeline.StageStats
	Table                       sparsetable.Stats
	// ResidentBytes is the memory of the whole process now; 0 if unknown.
	ResidentBytes int64
	LostSamples   float64 // portion of lost samples, with partial recovery
	// Uploads is what has happened to snapshots in snapshots.remote; nil if none are uploaded.
	Uploads *mirror.Summary
	// Arriving is the progress of fetching files of a snapshot of snapshots.remote; nil if none is
	// used.
	Arriving *remote.ArrivingStats
	Devices  []Device // devices that compute; nil if the host's processors do
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

// Begin enters a phase. If the reader starts at a cursor, the data before it count as read by an
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

// Resume sets how many steps the run has made, and how many examples of the phase an earlier
// process has trained.
func (s *Status) Resume(step, examples int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.Step, s.mu.Examples, s.mu.ExamplesBefore = step, examples, examples
}

// Limit sets the number of examples after which the phase ends; 0 means no limit.
func (s *Status) Limit(examples int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.MaxExamples = examples
}

// End leaves the phase. It must be called before the reader and the table are closed.
func (s *Status) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.reader, s.mu.table, s.mu.pipe = nil, nil, nil
}

// Lost sets the portion of lost samples of the run.
func (s *Status) Lost(portion float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lost = portion
}

// Uploads sets what uploads the snapshots of the run.
func (s *Status) Uploads(u *mirror.Uploader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.upload = u
}

// Arrives sets what fetches the files of the table.
func (s *Status) Arrives(a *remote.Arriving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.coming = a
}

// Computes sets the engine that computes.
func (s *Status) Computes(e engine.Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.engine = e
}

// Pipeline sets the pipeline through which the phase reads.
func (s *Status) Pipeline(p *pipeline.Pipeline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.pipe = p
}

// Batch counts a mini-batch, after the optimizer step with the given number.
func (s *Status) Batch(step int64, examples int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.Step = step
	s.mu.Examples += int64(examples)
}

// Metrics sets the quality of the model: log loss since the line before, and AUC of the epoch so
// far.
func (s *Status) Metrics(loss, auc float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.Loss, s.mu.AUC = loss, auc
}

// Bytes sets how many bytes of the phase have been read and used.
func (s *Status) Bytes(done int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.BytesRead = done
}
