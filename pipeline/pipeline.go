package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"
	"time"

	"aibox/internal/panics"
)

// ErrStop, returned by any stage (possibly wrapped), ends the whole pipeline
// without an error. Items still in queues are dropped, see Output.OnDrop.
var ErrStop = errors.New("pipeline: stop")

// Pipeline is a line of stages. It is built by one goroutine and run once;
// Stats may be called from any goroutine at any time.
type Pipeline struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu struct {
		sync.Mutex
		stages []*stage // in the order of the line
		ran    bool
	}
}

// New returns an empty pipeline. Cancelling ctx ends its run; every stage
// function gets a context derived from it.
func New(ctx context.Context) *Pipeline {
	p := &Pipeline{}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	return p
}

// stage is a stage without the types of its items.
type stage struct {
	name  string
	clock clock
	meter *meter // of the input queue; nil for the source

	// body runs the stage to its end. It returns errCut when it ended early
	// because the context was cancelled, nil when it did all its work.
	body func(ctx context.Context) error
	// finish tells the next stage that no more items come; nil for the sink.
	finish func()
	// drain drops what is left in the output queue; nil for the sink.
	drain func()
	// consumed is whether a stage was put behind this one.
	consumed bool
}

// errCut marks a stage that ended because the run was cancelled.
var errCut = errors.New("pipeline: cut short")

func (p *Pipeline) add(s *stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.ran {
		panic("pipeline: stage " + s.name + " was added after Run")
	}
	p.mu.stages = append(p.mu.stages, s)
}

// Run starts every stage, waits until the last has ended, and drops what is left in the queues. It
// returns the first error: a stage's error prefixed with the stage's name, a *panics.Error, or the
// cause of the cancelled context. It returns nil when all items went through, and after ErrStop.
//
// Run panics when called twice or on a line without a sink.
func (p *Pipeline) Run() error {
	stages := p.start()
	now := time.Now()
	for _, s := range stages {
		s.clock.start(now)
		if s.meter != nil {
			s.meter.start(now)
		}
	}
	outcomes := make([]outcome, len(stages)) // element i is written by stage i alone
	var wg sync.WaitGroup
	for i, s := range stages {
		wg.Go(func() { outcomes[i] = p.runStage(s) })
	}
	wg.Wait()
	for i := len(stages) - 1; i >= 0; i-- { // the oldest items are nearest to the sink
		if stages[i].drain != nil {
			stages[i].drain()
		}
	}
	cause := context.Cause(p.ctx)
	p.cancel(nil) // release the context's resources
	return verdict(cause, outcomes)
}

// outcome is how one stage ended.
type outcome struct {
	done     bool          // it did all its work
	panicked *panics.Error // or nil
}

// verdict returns Run's result: the first error, joined with panics that came later, since a panic
// shows a bug.
func verdict(cause error, outcomes []outcome) error {
	var errs []error
	complete := true
	for _, o := range outcomes {
		complete = complete && o.done
		if o.panicked != nil && o.panicked != cause {
			errs = append(errs, o.panicked)
		}
	}
	if !complete && !errors.Is(cause, ErrStop) {
		errs = append([]error{cause}, errs...)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// start checks the line and marks it as running.
func (p *Pipeline) start() []*stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.ran {
		panic("pipeline: Run was called twice")
	}
	p.mu.ran = true
	stages := p.mu.stages
	if len(stages) == 0 {
		panic("pipeline: Run was called on a pipeline without stages")
	}
	for _, s := range stages {
		if s.finish != nil && !s.consumed {
			panic("pipeline: nothing consumes the output of stage " + s.name)
		}
	}
	return stages
}

// runStage runs s to its end. If s did not do all its work, the pipeline's
// context is cancelled when runStage returns.
func (p *Pipeline) runStage(s *stage) (out outcome) {
	returned := false
	defer func() {
		if !returned {
			v := recover()
			if v == nil {
				v = "runtime.Goexit called"
			}
			out.panicked = panics.New("stage "+s.name, v)
			p.cancel(out.panicked)
		}
		s.clock.end(time.Now())
		if s.finish != nil {
			s.finish()
		}
	}()
	var err error
	pprof.Do(p.ctx, pprof.Labels("stage", s.name), func(ctx context.Context) { err = s.body(ctx) })
	returned = true
	switch {
	case err == nil:
		out.done = true
	case err == errCut || context.Cause(p.ctx) != nil:
		// The run was already cancelled: err is a consequence of that, or comes too late.
	default:
		p.cancel(fmt.Errorf("stage %s: %w", s.name, err))
	}
	return out
}
