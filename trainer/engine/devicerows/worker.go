package devicerows

import (
	"sync"
	"time"

	"aibox/gpu"
	"aibox/internal/panics"
)

// patience is how long an idle worker, or the goroutine that waits for one, polls before it blocks,
// if gpu.WaitsAwake. A blocked goroutine may resume on any thread of the process, and waking it
// also costs the goroutine that wakes it.
const patience = 200 * time.Microsecond

// receive receives from a channel, polling first: see patience.
func receive[T any](c <-chan T) (v T, ok bool) {
	end := time.Now()
	if gpu.WaitsAwake() {
		end = end.Add(patience)
	}
	for {
		select {
		case v, ok = <-c:
			return v, ok
		default:
		}
		if !time.Now().Before(end) {
			v, ok = <-c
			return v, ok
		}
	}
}

// worker runs tasks one after the other while the goroutine that uses Rows goes on. Tasks need only
// the host, such as copies between pinned memory and the host's rows.
type worker struct {
	name    string
	tasks   chan *task
	closing sync.Once
	ended   chan struct{}
}

// task is work that is repeatedly begun and waited for.
type task struct {
	do      func()
	begun   bool
	outcome chan error // nil, or the panic of do
}

func newTask(do func()) task { return task{do: do, outcome: make(chan error, 1)} }

func newWorker(name string) *worker {
	w := &worker{name: name, tasks: make(chan *task, 16), ended: make(chan struct{})}
	panics.Go(name, w.run)
	return w
}

func (w *worker) run() {
	defer close(w.ended)
	for t, ok := receive(w.tasks); ok; t, ok = receive(w.tasks) {
		t.outcome <- panics.Do(w.name, func() error {
			t.do()
			return nil
		})
	}
}

// begin queues a task.
func (w *worker) begin(t *task) {
	t.begun = true
	w.tasks <- t
}

// close waits until all tasks are done, and ends the worker. It may be called again.
func (w *worker) close() {
	w.closing.Do(func() { close(w.tasks) })
	<-w.ended
}

// isDone reports whether a task is done, or was never begun; with wait it waits until it is done.
func (t *task) isDone(wait bool) (bool, error) {
	if !t.begun {
		return true, nil
	}
	if wait {
		err, _ := receive(t.outcome)
		t.begun = false
		return true, err
	}
	select {
	case err := <-t.outcome:
		t.begun = false
		return true, err
	default:
		return false, nil
	}
}
