package flow

import (
	"context"
	"time"

	"aibox/pipeline"
	"aibox/sparsetable"
)

// work is stage EL+JL: it learns from a pass, and gives its memory back.
func (f *Flow) work(ctx context.Context, w Pulled, next pipeline.Next[Pulled], rows *puller) error {
	users := 2 // this function, and the engine, which may use the pass for longer
	left := func() {
		if users--; users == 0 {
			f.Bytes.add(-w.Pass.MemoryBytes())
			w.Pass.Recycle()
		}
	}
	defer left()
	if err := f.learn(ctx, w, next, rows.starved, func() {
		rows.release(w)
		left()
	}); err != nil {
		return err
	}
	if f.PassDone != nil {
		return f.PassDone(w.Pass)
	}
	return nil
}

// learn runs the engine over the mini-batches of a pass. release is called when its rows are not
// used any more; if the engine is told of passes beforehand, that can be during the next one.
// starved is ready if a pass waits for memory of the table.
func (f *Flow) learn(ctx context.Context, w Pulled, next pipeline.Next[Pulled], starved <-chan struct{}, release func()) (err error) {
	name := "evaluate"
	if f.Mode == sparsetable.PullCreate {
		name = "train"
	}
	defer f.Ranges.EndRange(f.Ranges.StartRange(name))
	pass := w.forEngine()
	if f.Announces {
		pass.Ended = release
	} else {
		defer release()
		defer func() { // the rows are not the engine's any more, and still pinned
			if err == nil && f.Ends != nil {
				f.Ends(w)
			}
		}()
	}
	start := time.Now()
	w.Rows.Begin()
	if f.Begun != nil {
		f.Begun(time.Since(start))
	}
	if f.Begins != nil {
		f.Begins(w)
	}
	if err := f.Engine.Begin(pass); err != nil {
		if f.Announces {
			release()
		}
		return err
	}
	// The rows are the engine's until End returns, also after an error.
	defer func() {
		if end := f.Engine.End(); err == nil {
			err = end
		}
	}()
	if f.Grace != nil {
		ctx = f.Grace
	}
	announced := !f.Announces
	announce := func(patience time.Duration) error {
		if announced {
			return nil
		}
		n, ok := next(patience, starved)
		if !ok {
			return nil
		}
		announced = true
		return f.Engine.Announce(n.forEngine())
	}
	for i := range w.Pass.Batches {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := announce(0); err != nil {
			return err
		}
		if err := f.Batch(&w.Pass.Batches[i]); err != nil {
			return err
		}
	}
	return announce(patience)
}

// patience is how long an engine that may be told of the next pass keeps the rows of a pass that
// was trained where there is none yet: if reading is slower, the rows that both have stay on the
// devices all the same. It bounds what a snapshot may lack.
const patience = time.Second
