package flow

import (
	"context"
	"time"

	"aibox/pipeline"
	"aibox/sparsetable"
)

// work is stage EL+JL. It learns from a pass and then releases the memory of the pass.
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

// learn runs the engine over the mini-batches of a pass. It calls release when the rows are no
// longer used, which may be during the next pass if the engine is told of passes beforehand.
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
		defer func() { // the engine no longer uses the rows, and they are still pinned
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

// patience is how long a trained pass stays open if the next pass cannot be announced yet. So rows
// that both passes use stay on the devices even if reading is slower. patience bounds how long
// trained work waits before a snapshot can include it.
const patience = time.Second
