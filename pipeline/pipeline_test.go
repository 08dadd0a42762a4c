package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aibox/internal/panics"
)

// count emits 0, 1, …, n-1.
func count(n int) func(context.Context, func(int) error) error {
	return func(_ context.Context, emit func(int) error) error {
		for i := range n {
			if err := emit(i); err != nil {
				return err
			}
		}
		return nil
	}
}

// mapOne is Map for a stage that makes one item of each.
func mapOne[I, O any](p *Pipeline, name string, in *Output[I], depth int, fn func(context.Context, I) (O, error)) *Output[O] {
	return Map(p, name, in, depth, func(ctx context.Context, v I, emit func(O) error) error {
		out, err := fn(ctx, v)
		if err != nil {
			return err
		}
		return emit(out)
	})
}

// sink is Sink for a stage that does not look ahead.
func sink[I any](p *Pipeline, name string, in *Output[I], depth int, fn func(context.Context, I) error) {
	Sink(p, name, in, depth, func(ctx context.Context, v I, _ Next[I]) error { return fn(ctx, v) }, nil)
}

func TestItemsArriveInOrder(t *testing.T) {
	for _, depth := range []int{0, 1, 7} {
		p := New(t.Context())
		src := Source(p, "source", count(100))
		words := mapOne(p, "map", src, depth, func(_ context.Context, i int) (string, error) { return fmt.Sprint(i), nil })
		var got []string
		sink(p, "sink", words, depth, func(_ context.Context, s string) error { got = append(got, s); return nil })
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		if len(got) != 100 {
			t.Fatalf("depth %d: %d items, want 100", depth, len(got))
		}
		for i, s := range got {
			if s != fmt.Sprint(i) {
				t.Fatalf("depth %d: item %d is %s", depth, i, s)
			}
		}
	}
}

func TestQueueBoundsHowFarTheSourceRunsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context())
		emitted := 0
		src := Source(p, "source", func(_ context.Context, emit func(int) error) error {
			for i := range 20 {
				if err := emit(i); err != nil {
					return err
				}
				emitted++
			}
			return nil
		})
		gate := make(chan struct{})
		sink(p, "sink", src, 3, func(context.Context, int) error { <-gate; return nil })
		done := make(chan error)
		go func() { done <- p.Run() }()
		synctest.Wait()
		if emitted != 4 { // one in the sink's hands, three queued
			t.Errorf("%d items emitted before the sink finished one, want 4", emitted)
		}
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestFirstErrorWins(t *testing.T) {
	boom := errors.New("boom")
	for _, failing := range []string{"source", "map", "sink"} {
		t.Run(failing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fail := func(name string, i int) error {
					if name == failing && i == 5 {
						return boom
					}
					return nil
				}
				p := New(t.Context())
				src := Source(p, "source", func(ctx context.Context, emit func(int) error) error {
					for i := 0; ; i++ {
						if err := fail("source", i); err != nil {
							return err
						}
						if err := emit(i); err != nil {
							return errors.New("the source's own words for: " + err.Error())
						}
					}
				})
				m := mapOne(p, "map", src, 2, func(_ context.Context, i int) (int, error) { return i, fail("map", i) })
				sink(p, "sink", m, 2, func(_ context.Context, i int) error { return fail("sink", i) })
				err := p.Run()
				if !errors.Is(err, boom) || err.Error() != "stage "+failing+": boom" {
					t.Errorf("Run returned %v", err)
				}
			}) // synctest fails the test if a goroutine is left behind
		})
	}
}

func TestStopIsNotAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context())
		emitted, consumed, dropped := 0, 0, 0
		src := Source(p, "source", func(_ context.Context, emit func(int) error) error {
			for {
				emitted++
				if err := emit(emitted); err != nil {
					return err
				}
			}
		})
		src.OnDrop(func(int) { dropped++ })
		sink(p, "sink", src, 4, func(_ context.Context, i int) error {
			consumed++
			if i == 10 {
				return fmt.Errorf("enough: %w", ErrStop)
			}
			return nil
		})
		if err := p.Run(); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		if consumed != 10 || emitted != consumed+dropped {
			t.Errorf("emitted %d, consumed %d, dropped %d", emitted, consumed, dropped)
		}
	})
}

func TestCancellationReturnsTheCause(t *testing.T) {
	why := errors.New("interrupted by the user")
	for _, where := range []string{"in source", "in emit", "in map", "in sink", "before run"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				hang := func(ctx context.Context, at string) error {
					if at == where {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
				p := New(ctx)
				src := Source(p, "source", func(ctx context.Context, emit func(int) error) error {
					for {
						if err := hang(ctx, "in source"); err != nil {
							return err
						}
						if err := emit(1); err != nil {
							return err
						}
						if where == "in source" {
							continue
						}
						time.Sleep(time.Millisecond)
					}
				})
				m := mapOne(p, "map", src, 1, func(ctx context.Context, i int) (int, error) { return i, hang(ctx, "in map") })
				sink(p, "sink", m, 1, func(ctx context.Context, i int) error {
					if where == "in emit" {
						<-ctx.Done()
						return nil
					}
					return hang(ctx, "in sink")
				})
				if where == "before run" {
					cancel(why)
				} else {
					go func() { time.Sleep(time.Second); cancel(why) }()
				}
				if err := p.Run(); err != why {
					t.Errorf("Run returned %v, want the cause", err)
				}
				cancel(nil)
			})
		})
	}
}

func TestPanicBecomesError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context())
		src := Source(p, "source", count(1000))
		sink(p, "sink", src, 1, func(_ context.Context, i int) error {
			if i == 3 {
				panic("index out of cheese")
			}
			return nil
		})
		err := p.Run()
		var pe *panics.Error
		if !errors.As(err, &pe) {
			t.Fatalf("Run returned %v", err)
		}
		if pe.Where != "stage sink" || pe.Value != "index out of cheese" || !strings.Contains(string(pe.Stack), "TestPanicBecomesError") {
			t.Errorf("stage %q, value %v, stack:\n%s", pe.Where, pe.Value, pe.Stack)
		}
	})
}

func TestPanicAfterStopIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context())
		src := Source(p, "source", func(ctx context.Context, emit func(int) error) error {
			if err := emit(1); err != nil {
				return err
			}
			<-ctx.Done()
			panic("late")
		})
		sink(p, "sink", src, 1, func(context.Context, int) error { return ErrStop })
		var pe *panics.Error
		if err := p.Run(); !errors.As(err, &pe) || pe.Value != "late" {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestGoexitIsReported(t *testing.T) {
	p := New(t.Context())
	src := Source(p, "source", func(context.Context, func(int) error) error { runtime.Goexit(); return nil })
	sink(p, "sink", src, 1, func(context.Context, int) error { return nil })
	var pe *panics.Error
	if err := p.Run(); !errors.As(err, &pe) || pe.Where != "stage source" {
		t.Errorf("Run returned %v", err)
	}
}

// TestEveryItemIsConsumedOrDroppedOnce runs pipelines of random shape, ends
// them at a random point in a random way and balances the books.
func TestEveryItemIsConsumedOrDroppedOnce(t *testing.T) {
	for seed := range uint64(400) {
		runRandom(t, seed)
	}
}

func runRandom(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	emitted := map[string]int{}  // queue and item -> times put in
	finished := map[string]int{} // consumed by the next stage, or dropped
	note := func(m map[string]int, queue string, i int) {
		mu.Lock()
		defer mu.Unlock()
		m[fmt.Sprint(queue, " ", i)]++
	}
	maps, items := rng.IntN(4), rng.IntN(60)
	boom := errors.New("boom")
	endings := []error{nil, boom, ErrStop}
	endStage, endItem, ending := rng.IntN(maps+3), rng.IntN(60), endings[rng.IntN(3)]
	external := rng.IntN(4) == 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	work := make([]int, maps+2) // how long each stage dawdles
	for i := range work {
		work[i] = rng.IntN(3)
	}
	dawdle := func(stage int) {
		for range work[stage] {
			runtime.Gosched()
		}
	}
	end := func(stage, i int) error {
		dawdle(stage)
		if stage != endStage || i != endItem {
			return nil
		}
		if external {
			cancel()
			return nil
		}
		return ending
	}

	p := New(ctx)
	out := Source(p, "q0", func(_ context.Context, emit func(int) error) error {
		for i := range items {
			if err := end(0, i); err != nil {
				return err
			}
			note(emitted, "q0", i)
			if err := emit(i); err != nil {
				return err
			}
		}
		return nil
	})
	out.OnDrop(func(i int) { note(finished, "q0", i) })
	for m := range maps {
		in, name := fmt.Sprint("q", m), fmt.Sprint("q", m+1)
		out = mapOne(p, name, out, rng.IntN(4), func(_ context.Context, i int) (int, error) {
			note(finished, in, i)
			if err := end(m+1, i); err != nil {
				return 0, err
			}
			note(emitted, name, i)
			return i, nil
		})
		out.OnDrop(func(i int) { note(finished, name, i) })
	}
	last := fmt.Sprint("q", maps)
	consumed := 0
	sink(p, "sink", out, rng.IntN(4), func(_ context.Context, i int) error {
		note(finished, last, i)
		if i != consumed {
			t.Errorf("seed %d: item %d came as number %d", seed, i, consumed)
		}
		consumed++
		return end(maps+1, i)
	})
	err := p.Run()
	for k, n := range emitted {
		if n != 1 || finished[k] != 1 {
			t.Fatalf("seed %d: %s emitted %d times, consumed or dropped %d times", seed, k, n, finished[k])
		}
	}
	if len(finished) != len(emitted) {
		t.Fatalf("seed %d: %d items finished, %d emitted", seed, len(finished), len(emitted))
	}
	reached := endStage <= maps+1 && endItem < items
	switch {
	case !reached || (!external && ending == nil):
		if err != nil || consumed != items {
			t.Fatalf("seed %d: error %v, %d of %d items consumed", seed, err, consumed, items)
		}
	case external:
		if err != nil && err != context.Canceled {
			t.Fatalf("seed %d: error %v after cancel", seed, err)
		}
		if err == nil && consumed != items {
			t.Fatalf("seed %d: no error, but %d of %d items consumed", seed, consumed, items)
		}
	case ending == ErrStop:
		if err != nil {
			t.Fatalf("seed %d: error %v after ErrStop", seed, err)
		}
	default:
		if !errors.Is(err, boom) {
			t.Fatalf("seed %d: error %v, want boom", seed, err)
		}
	}
}

func TestMisusePanics(t *testing.T) {
	nop := func(context.Context, int) error { return nil }
	for name, f := range map[string]func(){
		"no stages": func() { _ = New(t.Context()).Run() },
		"no sink": func() {
			p := New(t.Context())
			Source(p, "s", count(1))
			_ = p.Run()
		},
		"two consumers": func() {
			p := New(t.Context())
			s := Source(p, "s", count(1))
			sink(p, "a", s, 1, nop)
			sink(p, "b", s, 1, nop)
		},
		"other pipeline": func() { sink(New(t.Context()), "a", Source(New(t.Context()), "s", count(1)), 1, nop) },
		"run twice": func() {
			p := New(t.Context())
			sink(p, "a", Source(p, "s", count(1)), 1, nop)
			_ = p.Run()
			_ = p.Run()
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// TestNextItem: a sink sees the item behind the present one if it has arrived, gets it next, and
// gets every item once.
func TestNextItem(t *testing.T) {
	for _, depth := range []int{0, 1, 3} {
		p := New(t.Context())
		src := Source(p, "source", count(200))
		src.OnDrop(func(i int) { t.Errorf("item %d was dropped", i) })
		rng := rand.New(rand.NewPCG(uint64(depth), 1))
		want, seen := 0, 0
		Sink(p, "sink", src, depth, func(_ context.Context, i int, next Next[int]) error {
			if i != want {
				return fmt.Errorf("item %d instead of %d", i, want)
			}
			want++
			for range rng.IntN(3) {
				runtime.Gosched()
				if n, ok := next(0, nil); ok {
					seen++
					if n != want {
						return fmt.Errorf("the next item of %d is %d", i, n)
					}
				}
			}
			return nil
		}, func(i int) { t.Errorf("item %d was dropped", i) })
		if err := p.Run(); err != nil || want != 200 || seen == 0 {
			t.Errorf("depth %d: %d items, the next one was seen %d times: %v", depth, want, seen, err)
		}
	}
}

// TestNextItemIsAwaited: a sink may wait for the item behind the present one, which counts as
// starved, until there is one, none comes any more, the run is cancelled, or the sink has had
// enough.
func TestNextItemIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = time.Hour
		ctx, cancel := context.WithCancelCause(t.Context())
		p := New(ctx)
		wanted, enough := make(chan struct{}), make(chan struct{}, 1)
		src := Source(p, "source", func(_ context.Context, emit func(int) error) error {
			for i := range 3 {
				if i == 1 {
					<-wanted
					time.Sleep(10 * time.Millisecond)
				}
				if err := emit(i); err != nil {
					return err
				}
			}
			<-wanted
			return nil
		})
		over := errors.New("over")
		Sink(p, "sink", src, 1, func(_ context.Context, i int, next Next[int]) error {
			switch i {
			case 0:
				if n, ok := next(time.Millisecond, nil); ok {
					t.Errorf("item %d came before it was made", n)
				}
				enough <- struct{}{}
				if n, ok := next(long, enough); ok {
					t.Errorf("item %d came before it was made", n)
				}
				wanted <- struct{}{}
				if n, ok := next(long, enough); !ok || n != 1 {
					t.Errorf("the next item is %d, %v", n, ok)
				}
			case 2:
				time.AfterFunc(time.Millisecond, func() { cancel(over) })
				if n, ok := next(long, enough); ok {
					t.Errorf("item %d came after the run", n)
				}
				close(wanted)
				if n, ok := next(long, enough); ok {
					t.Errorf("item %d came after the last one", n)
				}
			}
			return nil
		}, func(i int) { t.Errorf("item %d was dropped", i) })
		if err := p.Run(); !errors.Is(err, over) {
			t.Error(err)
		}
		if sink := p.Stats()[1]; sink.Starved != 12*time.Millisecond || sink.Busy != 0 {
			t.Errorf("%+v", sink)
		}
	})
}

// TestNextItemIsDropped: when the run ends, an item that the sink has seen, but not got, is dropped
// on the sink's goroutine before all others, whatever ends the run.
func TestNextItemIsDropped(t *testing.T) {
	failed := errors.New("failed")
	for _, end := range []string{"error", "cancel", "panic"} {
		t.Run(end, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			p := New(ctx)
			src := Source(p, "source", count(9))
			var mu sync.Mutex
			var dropped []int
			src.OnDrop(func(i int) {
				mu.Lock()
				defer mu.Unlock()
				dropped = append(dropped, i)
			})
			inSink := false
			Sink(p, "sink", src, 4, func(_ context.Context, i int, next Next[int]) error {
				inSink = true
				for i == 2 {
					n, ok := next(0, nil)
					if !ok {
						runtime.Gosched()
						continue
					}
					if n != 3 {
						t.Errorf("the next item is %d", n)
					}
					switch end {
					case "error":
						return failed
					case "panic":
						panic(failed)
					}
					cancel(failed)
					return nil
				}
				return nil
			}, func(i int) {
				mu.Lock()
				defer mu.Unlock()
				if i != 3 || !inSink {
					t.Errorf("item %d was dropped", i)
				}
				dropped = append(dropped, -i)
			})
			if err := p.Run(); !errors.Is(err, failed) && !strings.Contains(err.Error(), "failed") {
				t.Error(err)
			}
			once := map[int]bool{}
			for _, i := range dropped {
				if once[i] || i >= 0 && i <= 3 {
					t.Errorf("dropped: %v", dropped)
				}
				once[i] = true
			}
			if !once[-3] {
				t.Errorf("dropped: %v", dropped)
			}
		})
	}
}
