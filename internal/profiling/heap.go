package profiling

import (
	"bytes"
	"runtime/metrics"
	"runtime/pprof"
	"sync"
	"time"

	"aibox/internal/panics"
)

// heapWatch keeps the heap profile from the time when the heap was largest. At the end of a job,
// when its tables are closed, a profile would no longer show what took the memory.
type heapWatch struct {
	largest uint64 // bytes of objects at the last profile
	profile bytes.Buffer
	quit    chan struct{}
	wait    sync.WaitGroup
}

const (
	heapInterval = time.Second
	// A new profile is taken when the heap is larger by this share, so that few are
	// taken while it grows.
	heapGrowth = 0.05
)

func watchHeap() *heapWatch {
	w := &heapWatch{quit: make(chan struct{})}
	w.look()
	w.wait.Go(func() {
		defer panics.Exit("the heap profile")
		tick := time.NewTicker(heapInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look()
			case <-w.quit:
				return
			}
		}
	})
	return w
}

// look takes a profile if the heap has grown.
func (w *heapWatch) look() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	size := sample[0].Value.Uint64()
	if float64(size) <= (1+heapGrowth)*float64(w.largest) {
		return
	}
	w.largest = size
	w.profile.Reset()
	if err := pprof.Lookup("heap").WriteTo(&w.profile, 0); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
}

// stop returns the profile.
func (w *heapWatch) stop() []byte {
	close(w.quit)
	w.wait.Wait()
	w.look()
	return w.profile.Bytes()
}
