package pipeline

import (
	"context"
	"fmt"
	"runtime/trace"
	"time"
)

// Source adds the first stage to p. fn calls emit for every item, from its own goroutine only, and
// returns nil at the end. emit blocks while the queue is full. Once the run is cancelled, emit
// drops the item and returns an error, which fn should return.
func Source[T any](p *Pipeline, name string, fn func(ctx context.Context, emit func(T) error) error) *Output[T] {
	s := &stage{name: name}
	o := &Output[T]{p: p, from: s}
	s.finish, s.drain = o.close, o.drain
	s.body = func(ctx context.Context) error {
		cut := false
		s.clock.begin(time.Now())
		region := trace.StartRegion(ctx, s.name)
		defer func() { region.End() }()
		err := fn(ctx, func(v T) error {
			s.clock.item(time.Now())
			region.End()
			defer func() { region = trace.StartRegion(ctx, s.name) }()
			if !o.send(ctx, v) || !o.wait(ctx) {
				cut = true
				return context.Cause(ctx)
			}
			s.clock.begin(time.Now())
			return nil
		})
		if err == nil && cut {
			return errCut // fn swallowed emit's error
		}
		return err
	}
	p.add(s)
	return o
}

// Map adds a stage behind in that turns each item into any number of others. fn calls emit for each
// of them, from its own goroutine only. emit blocks while the queue is full. Once the run is
// cancelled, emit drops the item and returns an error, which fn should return. depth is the
// capacity of the queue between in's stage and this one; 0 hands items over without a queue.
func Map[I, O any](p *Pipeline, name string, in *Output[I], depth int, fn func(ctx context.Context, in I, emit func(O) error) error) *Output[O] {
	s := &stage{name: name}
	o := &Output[O]{p: p, from: s}
	s.finish, s.drain = o.close, o.drain
	consume(p, s, in, depth, func(ctx context.Context, v I, _ Next[I]) error {
		cut := false
		err := fn(ctx, v, func(out O) error {
			s.clock.item(time.Now())
			if !o.send(ctx, out) {
				cut = true
				return errCut
			}
			s.clock.begin(time.Now())
			return nil
		})
		if cut {
			return errCut
		}
		return err
	}, nil)
	return o
}

// Next returns the next item if it has arrived; until that item is consumed, further calls return
// it again. If patience is positive, Next waits for an item until patience has passed, enough is
// ready, or no more items come.
type Next[I any] func(patience time.Duration, enough <-chan struct{}) (I, bool)

// Sink adds the last stage, behind in. depth is the capacity of the queue between in's stage and
// this one. With next, fn can prepare for an item while it works on the one before. If the run ends
// before fn gets an item that next has returned, dropped gets that item, on fn's goroutine, instead
// of the function set by OnDrop. dropped may be nil if fn never calls next.
func Sink[I any](p *Pipeline, name string, in *Output[I], depth int, fn func(ctx context.Context, in I, next Next[I]) error, dropped func(I)) {
	s := &stage{name: name}
	consume(p, s, in, depth, func(ctx context.Context, v I, next Next[I]) error {
		if err := fn(ctx, v, next); err != nil {
			return err
		}
		s.clock.item(time.Now())
		return nil
	}, dropped)
}

// consume makes s take its items from in and work on each by calling do.
func consume[I any](p *Pipeline, s *stage, in *Output[I], depth int, do func(context.Context, I, Next[I]) error, dropped func(I)) {
	if in.p != p {
		panic("pipeline: the input of stage " + s.name + " belongs to another pipeline")
	}
	if in.from.consumed {
		panic(fmt.Sprintf("pipeline: stages %s and another both consume the output of %s", s.name, in.from.name))
	}
	in.from.consumed = true
	in.queue = make(chan I, in.queueFor(depth))
	in.meter = &meter{length: func() int { return len(in.queue) }, capacity: depth}
	s.meter = in.meter
	var waits bool // whether waiting is an item that next has returned
	var waiting I
	s.body = func(ctx context.Context) error {
		next := func(patience time.Duration, enough <-chan struct{}) (I, bool) {
			if !waits {
				waiting, waits = in.receiveNow()
			}
			if !waits && patience > 0 {
				waiting, waits = in.receiveWithin(ctx, &s.clock, patience, enough)
			}
			return waiting, waits
		}
		defer func() {
			if waits {
				dropped(waiting)
			}
		}()
		for {
			v, ok := waiting, waits
			if !ok || ctx.Err() != nil {
				var err error
				if v, ok, err = in.receive(ctx, &s.clock); err != nil || !ok {
					return err
				}
			}
			waits = false
			s.clock.begin(time.Now())
			region := trace.StartRegion(ctx, s.name)
			err := do(ctx, v, next)
			region.End()
			if err != nil {
				return err
			}
		}
	}
	p.add(s)
}
