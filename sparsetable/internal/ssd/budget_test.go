package ssd_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// budgeted is a table on a disk, and pulls of which the last does not fit its
// budget.
type budgeted struct {
	t      *testing.T
	disk   *ssdDisk
	opts   sparsetable.Options
	pulls  [][]uint64
	rows   int  // that it has before them
	saving bool // a snapshot is being written from before the last pull on
	parts  int  // pulls that were done again in parts
	again  int  // parts that did not fit and were divided again
}

// newBudgeted makes a table of some shape, trained under a larger budget.
func newBudgeted(t *testing.T, seed uint64) *budgeted {
	rng := rand.New(rand.NewPCG(seed, 9))
	b := &budgeted{t: t, saving: rng.IntN(3) == 0}
	b.opts.Layout = sparsetable.Layout{
		ValueDim: []int{1, 3, 8, 17, 64, 300}[rng.IntN(6)], StateDim: rng.IntN(5), Format: sparsetable.ValueFormat(rng.IntN(3)),
	}
	devices := 1 + rng.IntN(3)
	b.disk = newSSDDisk(devices)
	for i := range devices {
		b.opts.SSD.Dirs = append(b.opts.SSD.Dirs, fmt.Sprintf("/ssd%d", i))
	}
	policies := sparsetable.CachePolicies()
	b.opts.SSD.CachePolicy = policies[rng.IntN(len(policies))]
	rows := []int{0, 100, 5000, 60000}[rng.IntN(4)]
	if b.opts.Layout.ValueDim > 100 {
		rows /= 10
	}
	b.rows = rows
	most := rows + 1 + rng.IntN(20000)
	// The table as it was trained before, with more memory.
	o := b.opts
	o.MemoryBytes = smallest(o.Layout, o.SSD, int64(rows)/4+3000) + int64(rng.IntN(4<<20))
	tab := b.open(o)
	for from := 0; from < rows; from += 1000 {
		keys := make([]uint64, 0, 1000)
		for i := range min(1000, rows-from) {
			keys = append(keys, tabletest.SpreadKey(from+i))
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range keys {
			b.opts.Layout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
		}
		ws.Release()
	}
	if rows > 0 {
		if rng.IntN(2) == 0 {
			if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p, err := tab.Snapshot(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	for range 1 + rng.IntN(4) {
		keys := make([]uint64, 0, 5000)
		for _, i := range rng.Perm(most)[:1+rng.IntN(min(most, 5000))] {
			keys = append(keys, tabletest.SpreadKey(i))
		}
		b.pulls = append(b.pulls, keys)
	}
	return b
}

func (b *budgeted) open(o sparsetable.Options) sparsetable.Table {
	b.t.Helper()
	tab, err := b.tryOpen(o, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return tab
}

// tryOpen opens the table. Writes of the catalog wait for gate.
func (b *budgeted) tryOpen(o sparsetable.Options, gate *sync.Mutex) (sparsetable.Table, error) {
	devices := make([]blockio.Device, len(b.disk.devices))
	for i, d := range b.disk.devices {
		devices[i] = d
	}
	return openOn(b.t.Context(), o, devices, errorfs.Wrap(b.disk.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if gate != nil && op.Kind == errorfs.OpFileWrite {
			gate.Lock() // waits
			defer gate.Unlock()
		}
		return nil
	})))
}

// try does all pulls under a budget, on a copy of the disk. done is the number of pulls that
// succeeded, or -1 if the table could not be opened.
func (b *budgeted) try(bytes int64) (done int, err error) {
	copied := *b
	defer func() { b.parts, b.again = copied.parts, copied.again }()
	copied.disk = b.disk.Crash(rand.New(rand.NewPCG(1, 1))).(*ssdDisk)
	o := b.opts
	o.MemoryBytes = bytes
	var gate sync.Mutex
	tab, err := copied.tryOpen(o, &gate)
	if err != nil {
		return -1, fmt.Errorf("open: %w", err)
	}
	var sets []*sparsetable.WorkingSet
	var pending *sparsetable.PendingSnapshot
	for i, keys := range b.pulls {
		if i == len(b.pulls)-1 && b.saving {
			if pending, err = tab.Snapshot(b.t.Context(), nil); err != nil {
				err = fmt.Errorf("snapshot: %w", err)
				break
			}
			gate.Lock()
			time.AfterFunc(2*time.Millisecond, gate.Unlock)
		}
		var ws *sparsetable.WorkingSet
		if ws, err = tab.Pull(b.t.Context(), keys, sparsetable.PullCreate); err != nil {
			break
		}
		sets = append(sets, ws)
	}
	if st := tab.Stats(); st.MemoryBytes > st.BudgetBytes {
		err = errors.Join(err, fmt.Errorf("%d bytes of memory, budget %d", st.MemoryBytes, st.BudgetBytes))
	}
	if pending != nil {
		if _, werr := pending.Wait(); werr != nil {
			err = errors.Join(err, werr)
		}
	}
	for _, ws := range sets {
		ws.Release()
	}
	if full := new(sparsetable.BudgetError); errors.As(err, &full) && len(sets) < len(b.pulls) {
		err = errors.Join(err, copied.pullInParts(tab, b.pulls[len(sets)], full))
	}
	return len(sets), errors.Join(err, tab.Close())
}

// pullInParts pulls the keys of a Pull that did not fit, in parts of the size that its error says,
// and reports what goes wrong.
func (b *budgeted) pullInParts(tab sparsetable.Table, keys []uint64, full *sparsetable.BudgetError) error {
	if full.PinnedRows < 1 {
		return nil // the table itself does not fit
	}
	b.parts++
	for len(keys) > 0 {
		n := min(full.FitRows, len(keys))
		if n < 1 {
			return fmt.Errorf("%w: not one of %d keys is said to fit: %v", errParts, len(keys), full)
		}
		ws, err := tab.Pull(b.t.Context(), keys[:n], sparsetable.PullCreate)
		if err == nil {
			ws.Release()
			keys = keys[n:]
			continue
		}
		before := full.FitRows
		if !errors.As(err, &full) || full.FitRows >= before {
			return fmt.Errorf("%w: pull %d of %d keys: %v", errParts, n, len(keys), err)
		}
		b.again++
	}
	return nil
}

var errParts = errors.New("a pull in parts failed")

// budgetOf is the budget that an error asks for.
func budgetOf(t *testing.T, err error) (bytes int64) {
	t.Helper()
	text := err.Error()
	at := strings.Index(text, "needs a budget of ")
	if at < 0 {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(text[at:], "needs a budget of %d bytes", &bytes); err != nil {
		t.Fatal(text, err)
	}
	return bytes
}

// TestSSDBudgetError checks the budget that an ErrBudget asks for. With that budget, what failed
// succeeds in a table that is opened anew, and with a noticeably smaller one it fails. That holds
// for opening, for a pull while no other set is pinned, and in a table that was empty. If rows were
// restored, the pinned ones lie scattered among them and keep the cache from giving back memory
// that a later Pull needs. The same pull succeeds in parts of the size that the error says, once no
// other set is pinned.
func TestSSDBudgetError(t *testing.T) {
	first, seeds := testseed.Of(t), uint64(60)
	if testing.Short() {
		seeds = 10
	}
	if _, given := testseed.Given(t); given {
		seeds = 1
	}
	asked, scattered, parts, again := 0, 0, 0, 0
	for seed := first; seed < first+seeds; seed++ {
		b := newBudgeted(t, seed)
		empty := smallest(b.opts.Layout, b.opts.SSD, 0)
		done, err := b.try(empty)
		var log []string
		for errors.Is(err, sparsetable.ErrBudget) && !errors.Is(err, errParts) {
			before, budget := done, budgetOf(t, err)
			log = append(log, fmt.Sprintf("%d pulls: %v", before, err))
			asked++
			if done, err = b.try(budget); done <= before {
				if before > 0 && b.rows > 0 && errors.Is(err, sparsetable.ErrBudget) && !errors.Is(err, errParts) {
					scattered++
					err = nil
				}
				break
			}
			if less := budget - (budget-empty)/4 - 64<<10; before < 1 && less > empty {
				if done, err := b.try(less); err == nil || done > before {
					t.Errorf("%d bytes are enough", less)
				}
			}
		}
		parts, again = parts+b.parts, again+b.again
		if err != nil || t.Failed() {
			t.Fatalf("seed %d, %+v, %s, %d directories, %d rows, a snapshot %v: %v, after\n%s", seed, b.opts.Layout, b.opts.SSD.CachePolicy,
				len(b.opts.SSD.Dirs), b.rows, b.saving, err, strings.Join(log, "\n"))
		}
	}
	t.Logf("%d seeds from %d: %d budgets asked for, %d times pinned rows lay scattered, %d pulls done in parts, of which %d did not fit", seeds, first, asked, scattered, parts, again)
	if asked < int(seeds)/2 {
		t.Errorf("only %d budgets asked for", asked)
	}
	if parts < int(seeds)/4 {
		t.Errorf("only %d pulls done in parts", parts)
	}
}

// TestRefusedCacheLimit checks that a limit that is too low even for an empty cache changes nothing.
func TestRefusedCacheLimit(t *testing.T) {
	l := newLosing(t, testseed.Rand(t), 1)
	tab := l.open(l.opts)
	ssd.StopBackground(tab)
	before, err := ssd.LimitCache(tab, 2<<20)
	l.must(err)
	after, err := ssd.LimitCache(tab, 1)
	if before == 0 || after != before || err == nil {
		t.Errorf("the table expects %d rows in the cache, %d before: %v", after, before, err)
	}
	l.must(tab.Close())
}
