package ssd_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// scarceMachine is a machine that has less memory than the budget of its table.
type scarceMachine struct {
	t     *testing.T
	table sparsetable.Table
	bytes int64 // that the table can have
	log   strings.Builder
}

// openScarce opens a table with a budget of 16 MiB on such a machine.
func openScarce(t *testing.T, bytes int64) *scarceMachine {
	t.Helper()
	m := &scarceMachine{t: t, bytes: bytes}
	o := sparsetable.Options{FS: newSSDDisk(1), Layout: outsideLayout, MemoryBytes: 16 << 20, Logger: slog.New(slog.NewTextHandler(&m.log, nil))}
	o.SSD.Dirs = []string{"/ssd0"}
	var err error
	if m.table, err = ssdKind("", 1).Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.table.Close(); err != nil {
			t.Error(err)
		}
	})
	ssd.SetRoom(m.table, func() int64 { return m.bytes - m.table.Stats().MemoryBytes })
	return m
}

// train trains rows, beginning with the given one, that many at a time.
func (m *scarceMachine) train(from, to, batch int) error {
	for ; from < to; from += batch {
		keys := make([]uint64, 0, batch)
		for i := range batch {
			keys = append(keys, tabletest.SpreadKey(from+i))
		}
		ws, err := m.table.Pull(m.t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			return err
		}
		for i := range ws.Len() {
			touchRow(outsideLayout, ws.Row(i))
		}
		ws.Release()
	}
	return nil
}

// TestScarce checks that a table takes no more memory than its machine has, whatever its budget,
// that it gives memory back when other processes take it, and that it takes it again when there is
// some. Its rows must not change.
func TestScarce(t *testing.T) {
	const rows, batch = 150_000, 1500 // 18 MiB
	m := openScarce(t, 10<<20)
	train := func(from, to int) {
		t.Helper()
		if err := m.train(from, to, batch); err != nil {
			t.Fatal(err)
		}
	}
	// Passes of 1,500 rows take 200 KiB, and buckets wait for a turn of the background.
	const slack = 1 << 20
	train(0, rows)
	if st := m.table.Stats(); st.MemoryBytes > m.bytes+slack || st.MemoryBytes < m.bytes-2*slack || st.LackingBytes == 0 {
		t.Errorf("it takes %d bytes of %d; %d of the budget are lacking", st.MemoryBytes, m.bytes, st.LackingBytes)
	}
	m.bytes = 7 << 20
	train(0, 2*batch)
	if st := m.table.Stats(); st.MemoryBytes > m.bytes+slack {
		t.Errorf("it takes %d bytes of %d", st.MemoryBytes, m.bytes)
	}
	train(2*batch, rows)
	m.bytes = 1 << 40
	train(0, rows)
	if st := m.table.Stats(); st.MemoryBytes < st.BudgetBytes-2*slack || st.LackingBytes != 0 {
		t.Errorf("it takes %d bytes of %d; %d of the budget are lacking", st.MemoryBytes, st.BudgetBytes, st.LackingBytes)
	}
	n := 0
	if err := m.table.Scan(t.Context(), func(key uint64, row []float32) error {
		if n++; row[0] != 3 || outsideLayout.Stats(row).Count != 3 {
			t.Fatalf("row of key %d: %v", key, row)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
	if got := strings.Count(m.log.String(), "cannot get all the memory"); got != 1 {
		t.Errorf("it warned %d times:\n%s", got, m.log.String())
	}
}

// TestScarceWhilePinned checks a table of which rows of several sets are pinned at any time, so
// that each slab of the cache has some. A patient caller is asked to release all of them if memory
// has to be given back, and only then.
func TestScarceWhilePinned(t *testing.T) {
	const rows, size = 60_000, 1500
	m := openScarce(t, 1<<40)
	var sets []*sparsetable.WorkingSet
	waited := 0
	release := func(n int) {
		for _, ws := range sets[:n] {
			ws.Release()
		}
		sets = sets[n:]
	}
	defer func() { release(len(sets)) }()
	rng := rand.New(rand.NewPCG(1, 2))
	train := func(passes int) {
		t.Helper()
		for range passes {
			keys := make([]uint64, 0, size)
			for _, i := range rng.Perm(rows)[:size] {
				keys = append(keys, tabletest.SpreadKey(i))
			}
			ws, err := m.table.Pull(t.Context(), keys, sparsetable.PullCreate|sparsetable.PullPatient)
			if errors.Is(err, sparsetable.ErrCrowded) {
				waited++
				release(len(sets))
				ws, err = m.table.Pull(t.Context(), keys, sparsetable.PullCreate)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range ws.Len() {
				touchRow(outsideLayout, ws.Row(i))
			}
			if sets = append(sets, ws); len(sets) == 3 {
				release(1)
			}
		}
	}
	train(150)
	if before := m.table.Stats().MemoryBytes; waited > 0 || before < 9<<20 {
		t.Fatalf("it takes %d bytes, and the caller was asked to wait %d times", before, waited)
	}
	m.bytes = 8 << 20
	train(4)
	if st := m.table.Stats(); st.MemoryBytes > m.bytes+512<<10 || waited == 0 {
		t.Errorf("it takes %d bytes of %d; the caller was asked to wait %d times", st.MemoryBytes, m.bytes, waited)
	}
	was := waited
	train(50)
	if waited > was+5 {
		t.Errorf("the caller was asked to wait %d times in 50 passes", waited-was)
	}
}

// TestScarceButSmall checks that a small table logs nothing about a budget that the machine does
// not have.
func TestScarceButSmall(t *testing.T) {
	m := openScarce(t, 10<<20)
	if err := m.train(0, 15_000, 1500); err != nil {
		t.Fatal(err)
	}
	if got := m.log.String(); strings.Contains(got, "cannot have") || m.table.Stats().LackingBytes == 0 {
		t.Errorf("%d bytes are lacking:\n%s", m.table.Stats().LackingBytes, got)
	}
}

// TestScarcePull checks that a Pull of more rows than the machine has memory for says so, and how
// many rows fit.
func TestScarcePull(t *testing.T) {
	m := openScarce(t, 7<<20)
	var budget *sparsetable.BudgetError
	err := m.train(0, 60_000, 60_000) // 7 MiB
	if !errors.As(err, &budget) || !errors.Is(err, sparsetable.ErrMemory) || !errors.Is(err, sparsetable.ErrBudget) || budget.LackingBytes == 0 || budget.FitRows < 1000 {
		t.Fatalf("%v, want an error of memory that says what fits", err)
	}
	if err := m.train(0, budget.FitRows, budget.FitRows); err != nil {
		t.Errorf("so many rows fit, it said: %v", err)
	}
	m.bytes = 1 << 40
	if err := m.train(0, 60_000, 60_000); err != nil {
		t.Errorf("with enough memory: %v", err)
	}
}

// TestSSDRandomScarce runs the random sequences of TestSSDRandom on a machine whose free memory
// changes all the time.
func TestSSDRandomScarce(t *testing.T) {
	k := ssdKind("", 3)
	k.Vary = varySSD
	k.RunBackground = func(ctx context.Context, table sparsetable.Table, rng *rand.Rand) (string, error) {
		room := []int64{-1 << 20, -100 << 10, -1, 0, 50 << 10, 1 << 20, 1 << 40}[rng.IntN(7)]
		ssd.SetRoom(table, func() int64 { return room })
		return runBackgroundSSD(ctx, table, rng)
	}
	k.Enough = func(t *testing.T, c tabletest.Counters) {
		if c.Refused*1000 < 5*c.Steps || c.Evictions*1000 < 1500*c.Steps {
			t.Errorf("%d pulls refused and %d rows evicted in %d steps: too few to test anything", c.Refused, c.Evictions, c.Steps)
		}
	}
	tabletest.Random(t, k)
}
