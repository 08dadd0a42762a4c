package tabletest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
)

// seedsVariable is the number of random sequences; "make stress" sets it.
const seedsVariable = "AIBOX_TEST_SEEDS"

// Random runs random sequences of operations and compares the table with a model. It uses the seeds
// from 0 on, or new random seeds if the tests are told so (package testseed). A failing sequence is
// shortened, and its steps are reported.
func Random(t *testing.T, k Kind) {
	const steps = 100
	first, seeds := uint64(0), uint64(250)
	if testing.Short() {
		seeds = 60
	}
	if n, err := strconv.ParseUint(os.Getenv(seedsVariable), 10, 32); err == nil {
		seeds = n
	}
	if testseed.Fresh() {
		first = testseed.Of(t)
	}
	if seed, given := testseed.Given(t); given {
		first, seeds = seed, 1
	}
	t.Logf("%d seeds from %d", seeds, first)
	var sum Counters
	for seed := first; seed < first+seeds; seed++ {
		all := make([]int, steps)
		for i := range all {
			all[i] = i
		}
		err := runSteps(t, k, seed, all, &sum)
		if err == nil {
			continue
		}
		t.Errorf("seed %d (%s=%d runs it alone): %v", seed, testseed.Variable, seed, err)
		less := shorten(all, func(list []int) bool { return runSteps(t, k, seed, list, new(Counters)) != nil })
		t.Logf("%d of its %d steps are enough: %v", len(less), steps, runSteps(t, k, seed, less, new(Counters)))
		return
	}
	t.Logf("%d seeds: %+v", seeds, sum)
	if k.Enough != nil && seeds >= 60 {
		k.Enough(t, sum)
	}
}

// Counters are sums over tables.
type Counters struct {
	sparsetable.Stats
	Steps, Crashes, Reopened, Refused int64 // Refused: operations that did not fit the memory budget
	Flushes, Compactions              int64 // Compactions: files that Compact emptied
	Lost                              int64 // rows
}

// add adds what a table counted while it was open.
func (c *Counters) add(st sparsetable.Stats) {
	sum, one := reflect.ValueOf(&c.Stats).Elem(), reflect.ValueOf(st)
	for i := range sum.NumField() {
		if f := sum.Field(i); f.CanInt() {
			f.SetInt(f.Int() + one.Field(i).Int())
		}
	}
}

// failure is the value with which a runner panics when the table is wrong.
type failure struct{ error }

// runSteps runs the steps of a seed that list names. Each step draws its random numbers from the
// seed and its own number, so that it does the same, as far as possible, when other steps are left
// out.
func runSteps(t *testing.T, k Kind, seed uint64, list []int, sum *Counters) (err error) {
	r := newRunner(t, k, seed, sum)
	defer func() {
		p := recover()
		f, ok := p.(failure)
		if p != nil && !ok {
			panic(p)
		}
		if ok {
			err = fmt.Errorf("%w\n%s", f.error, strings.Join(r.log[max(0, len(r.log)-40):], "\n"))
			for _, p := range r.pinned {
				p.set.Release()
			}
			if r.table != nil {
				_ = r.table.Close() // the failure is what counts
			}
		}
	}()
	r.reopen(0)
	for _, step := range list {
		r.rng = rand.New(rand.NewPCG(seed, uint64(step)))
		r.step()
		sum.Steps++
	}
	r.close()
	if n := r.fs.OpenFiles(); n != 0 {
		r.fatalf("%d files are still open", n)
	}
	return nil
}

// shorten leaves out parts of a failing list, as long as the rest still fails: first halves, then
// smaller and smaller parts.
func shorten(list []int, fails func([]int) bool) []int {
	for part := len(list) / 2; part > 0; part /= 2 {
		for at := 0; at < len(list); {
			less := slices.Delete(slices.Clone(list), at, min(at+part, len(list)))
			if fails(less) {
				list = less
			} else {
				at += part
			}
		}
	}
	return list
}

// runner drives a table and its model.
type runner struct {
	t      *testing.T
	k      Kind
	seed   uint64
	rng    *rand.Rand
	sum    *Counters
	log    []string
	fs     Disk
	table  sparsetable.Table
	opts   sparsetable.Options
	layout sparsetable.Layout
	keys   []uint64 // all keys that the run uses

	rows      state
	pinned    []pinnedSet
	announced [][]uint64
	saved     map[uint64]savedState // by snapshot id
	pending   *sparsetable.PendingSnapshot
	next      savedState // what pending will save
	lost      state      // what openLost did not find
}

func newRunner(t *testing.T, k Kind, seed uint64, sum *Counters) *runner {
	r := &runner{
		t: t, k: k, seed: seed, sum: sum, rng: rand.New(rand.NewPCG(seed, 1<<40)), fs: k.disk(),
		layout: layout, rows: state{}, saved: map[uint64]savedState{},
	}
	if seed%3 == 1 {
		r.layout.ValueDim = 60 // fewer rows in more buckets
	}
	r.keys = []uint64{0, 1, math.MaxUint64, 1 << 63}
	for len(r.keys) < 4+k.MoreKeys+r.rng.IntN(300) {
		k := r.rng.Uint64()
		if r.rng.IntN(2) == 0 {
			k &= 0x3ff // clustered keys
		}
		if !slices.Contains(r.keys, k) {
			r.keys = append(r.keys, k)
		}
	}
	r.opts = options(r.fs)
	r.opts.Layout = r.layout
	if k.Vary == nil && seed%3 == 0 {
		r.opts.MemoryBytes = tightBudget(t, k)
	}
	return r
}

// tightBudget is a budget for a small table with some pinned sets, without room for copies
// of rows.
func tightBudget(t *testing.T, k Kind) int64 {
	tab, err := k.Open(t.Context(), options(k.disk()))
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close() //nolint:errcheck // an empty table
	return tab.Stats().MemoryBytes + 4096
}

func (r *runner) fatalf(format string, args ...any) {
	panic(failure{fmt.Errorf(format, args...)})
}

func (r *runner) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *runner) step() {
	switch n := r.rng.IntN(100); {
	case n < 22:
		r.pull()
	case n < 48:
		r.train()
	case n < 62:
		r.release()
	case n < 67:
		r.lookup()
	case n < 70:
		r.check()
	case n < 73:
		r.expire()
	case n < 75:
		r.importRows()
	case n < 80:
		r.snapshot()
	case n < 82:
		r.drop()
	case n < 84:
		r.close()
		r.reopen(r.anyID())
	case n < 85:
		if r.k.Lose != nil {
			r.loss()
			break
		}
		r.readOnly()
	case n < 87:
		r.crash()
	case n < 90:
		r.announce()
	case n < 91:
		r.forget()
	case n < 94:
		r.runBackground()
	case n < 96:
		r.flush()
	case n < 98:
		r.compact()
	default:
		r.wait()
	}
	st := r.table.Stats()
	if st.BudgetBytes != r.opts.MemoryBytes && r.opts.MemoryBytes > 0 || st.BudgetBytes > 0 && st.MemoryBytes > st.BudgetBytes {
		r.fatalf("%d bytes of memory, budget %d", st.MemoryBytes, st.BudgetBytes)
	}
	if st.PinnedSets != int64(len(r.pinned)) {
		r.fatalf("%d pinned sets, want %d", st.PinnedSets, len(r.pinned))
	}
}
