package generate

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"aibox/internal/panics"
)

// Generator draws examples from a model. New makes one; it may be used by
// several goroutines.
type Generator struct {
	cfg       Config
	fields    []field
	columns   []column
	latentDim int // 0 without a pairwise part

	linearScale, pairwiseScale float64

	mu   sync.Mutex
	days []*day // a few, the latest used first
}

// keptDays is how many days' calibrations are kept. That is enough if a log and its
// evaluation set alternate between two days.
const keptDays = 4

// New checks the configuration, listing every fault, and calibrates the model.
func New(cfg Config) (*Generator, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Fields = slices.Clone(cfg.Fields)
	g := &Generator{cfg: cfg}
	for i := range cfg.Fields {
		g.fields = append(g.fields, newField(cfg.Seed, i, &cfg.Fields[i]))
	}
	for j := range cfg.DenseColumns {
		g.columns = append(g.columns, newColumn(cfg.Seed, j))
	}
	if cfg.InteractionStrength > 0 {
		g.latentDim = cfg.LatentDim
	}
	d := g.newDay(0)
	linear, pairwise := g.parts(d)
	if err := g.setScales(linear, pairwise); err != nil {
		return nil, err
	}
	g.setBias(d, linear, pairwise)
	g.days = []*day{d}
	return g, nil
}

// Config returns the configuration.
func (g *Generator) Config() Config {
	cfg := g.cfg
	cfg.Fields = slices.Clone(cfg.Fields)
	return cfg
}

// day returns the model of a day, calibrated on its first use.
func (g *Generator) day(number int) *day {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.days, func(d *day) bool { return d.number == number })
	var d *day
	if at >= 0 {
		d = g.days[at]
		g.days = slices.Delete(g.days, at, at+1)
	} else {
		d = g.newDay(number)
		linear, pairwise := g.parts(d)
		g.setBias(d, linear, pairwise)
	}
	g.days = slices.Insert(g.days, 0, d)
	g.days = g.days[:min(len(g.days), keptDays)]
	return d
}

// Request names a range of examples.
type Request struct {
	Day     int   // 0, 1, 2, …
	First   int64 // index within the day of the first example
	Count   int64
	Threads int // that draw examples; 0: GOMAXPROCS. The examples do not depend on it
}

// A block has at most this many examples and about this many values, which is work for
// some tens of milliseconds.
const (
	blockExamples = 4096
	blockValues   = 1 << 19
)

// Generate draws examples and hands them to emit block by block, in order,
// from the goroutine that called it. It ends early with the first error of
// emit or when ctx ends, and leaves no goroutine behind.
func (g *Generator) Generate(ctx context.Context, req Request, emit func(*Block) error) error {
	if req.Day < 0 || req.First < 0 || req.Count < 0 || req.First > math.MaxInt64-req.Count {
		return fmt.Errorf("generate: day %d, first example %d and count %d cannot be drawn: a number is negative or too large", req.Day, req.First, req.Count)
	}
	if req.Count == 0 {
		return ctx.Err()
	}
	d := g.day(req.Day)
	size := g.blockSize()
	blocks := (req.Count-1)/size + 1
	threads := req.Threads
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	threads = int(min(int64(threads), blocks))

	ctx, cancel := context.WithCancel(ctx)
	type task struct {
		block    Block
		first    int64
		n        int
		finished chan struct{}
	}
	// Two blocks per thread: one being drawn, one waiting to be emitted. A task
	// is submitted only when its previous block has been emitted.
	ring := make([]task, min(int64(2*threads), blocks))
	for i := range ring {
		ring[i].finished = make(chan struct{}, 1)
	}
	tasks := make(chan *task, len(ring))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(tasks)
	defer cancel()
	for range threads {
		wg.Go(func() {
			defer panics.Exit("generating examples")
			e := g.newExample()
			for t := range tasks {
				if ctx.Err() == nil {
					g.fill(&t.block, d, e, t.first, t.n)
				}
				t.finished <- struct{}{}
			}
		})
	}
	submitted := int64(0)
	for i := range blocks {
		for ; submitted < blocks && submitted < i+int64(len(ring)); submitted++ {
			t := &ring[submitted%int64(len(ring))]
			t.first = req.First + submitted*size
			t.n = int(min(size, req.Count-submitted*size))
			tasks <- t
		}
		t := &ring[i%int64(len(ring))]
		<-t.finished
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(&t.block); err != nil {
			return err
		}
	}
	return nil
}

func (g *Generator) blockSize() int64 {
	most := 0.0
	for i := range g.cfg.Fields {
		most += math.Max(1, float64(g.cfg.Fields[i].MaxValues))
	}
	return int64(min(max(blockValues/max(most, 1), 1), blockExamples))
}
