package devicerows

import (
	"sync"
	"time"

	"aibox/gpu"
	"aibox/internal/panics"
)

// patience is how long a worker that has nothing to do, and who waits for one, looks before it
// sleeps, if it waits awake. A goroutine that sleeps is woken on any thread of the process, and who
// wakes it pays for that, too.
const patience = 200 * time.Microsecond

// receive receives from a channel. It is not ok if that is closed and empty.
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

// worker does what needs the host alone, such as copies between pinned memory and the host's rows,
// one task after the other, while the goroutine that uses Rows goes on.
type worker struct {
	name    string
	tasks   chan *task
	closing sync.Once
	ended   chan struct{}
}

// task is work that is begun, and then waited for, again and again.
type task struct {
	do      func()
	begun   bool
	outcome chan error // of the work, which can only panic
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

// begin begins a task.
func (w *worker) begin(t *task) {
	t.begun = true
	w.tasks <- t
}

// close returns when all tasks are done. It may be called again.
func (w *worker) close() {
	w.closing.Do(func() { close(w.tasks) })
	<-w.ended
}

// isDone reports whether a task that was begun is done; with wait it is.
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
