package ssd_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/bucketfile"
)

// within fails the test if do takes too long.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	for range 600 { // not ten minutes at once: the machine may be halted meanwhile
		select {
		case <-done:
			return
		case <-time.After(time.Second):
		}
	}
	stacks := make([]byte, 4<<20)
	panic(fmt.Sprintf("%s hangs\n%s", what, stacks[:runtime.Stack(stacks, true)]))
}

// faultKind is a way in which operations fail, beginning with the n-th of those that can fail.
type faultKind struct {
	name  string
	may   func(op faultyOp) bool
	count int // of operations that fail; 0: all until the crash
	fault func(seed uint64, op faultyOp) blocktest.Fault
	// cause is what errors wrap; nil: they report damage.
	cause error
	// heals: once operations succeed, so does the table.
	heals bool
}

var faultKinds = []faultKind{
	{"one error", func(faultyOp) bool { return true }, 1, torn(syscall.EIO), syscall.EIO, false},
	{"dead disk", func(faultyOp) bool { return true }, 0, torn(syscall.EIO), syscall.EIO, false},
	{"full disk", faultyOp.writes, 0, torn(syscall.ENOSPC), syscall.ENOSPC, false},
	{"full disk for rows", faultyOp.writesRows, 0, torn(syscall.ENOSPC), syscall.ENOSPC, true},
	{"unreadable rows", faultyOp.readsRows, 5, torn(syscall.EIO), syscall.EIO, true},
	{"flipped bits", faultyOp.readsRows, 5, func(uint64, faultyOp) blocktest.Fault { return blocktest.Fault{FlipBit: true} }, nil, true},
	{"short reads", faultyOp.readsRows, 5, part, nil, true},
	{"lost writes", func(op faultyOp) bool { return op.writesRows() && op.kind == blocktest.Write }, 5, part, nil, false},
}

// part reads or writes only a part, and returns no error.
func part(seed uint64, op faultyOp) blocktest.Fault {
	return blocktest.Fault{Partial: true, Bytes: int(seed*7919) % max(op.bytes, 1)}
}

// torn makes an operation fail. If it is a write to a device, a part of it is done all the same.
func torn(err error) func(uint64, faultyOp) blocktest.Fault {
	return func(seed uint64, op faultyOp) blocktest.Fault {
		if op.kind == blocktest.Write && !op.fs {
			return blocktest.Fault{Err: err, Partial: true, Bytes: int(seed*7919) % (op.bytes + 1)}
		}
		return blocktest.Fault{Err: err}
	}
}

// failFrom runs the script and makes operations fail, beginning with the n-th.
func (k faultKind) failFrom(t *testing.T, script faultScript, seed uint64, n int) *faulty {
	f := newFaulty(t, script, seed)
	at := 0
	f.decide = func(op faultyOp) blocktest.Fault {
		if !k.may(op) {
			return blocktest.Fault{}
		}
		if at++; at <= n || k.count > 0 && at > n+k.count {
			return blocktest.Fault{}
		}
		return k.fault(uint64(n), op)
	}
	within(t, fmt.Sprintf("%s, seed %d, operation %d", k.name, seed, n), func() { script.run(f) })
	f.setFaults(nil)
	f.ops = at
	return f
}

// check checks the errors that the script returned, that the table continues to work where it can,
// and what a crash leaves.
func (k faultKind) check(f *faulty, n int) error {
	var wrong []error
	for _, err := range f.errs {
		corrupt := errors.As(err, new(*sparsetable.CorruptionError))
		if k.cause != nil && (corrupt || !errors.Is(err, k.cause)) || k.cause == nil && !corrupt {
			wrong = append(wrong, err)
		}
		if k.cause != nil && !strings.Contains(err.Error(), "/ssd") {
			wrong = append(wrong, fmt.Errorf("the error names no directory: %w", err))
		}
		if full := errors.Is(err, sparsetable.ErrNoSpace) || errors.Is(err, sparsetable.ErrFailed); k.cause == syscall.ENOSPC && !full {
			wrong = append(wrong, fmt.Errorf("neither ErrNoSpace nor ErrFailed: %w", err))
		}
	}
	if k.heals && f.table != nil {
		if err := f.continueOnWorkingDisk(); err != nil {
			wrong = append(wrong, fmt.Errorf("afterwards: %w", err))
		}
	}
	before := f.table
	if err := f.afterCrash(uint64(n), k.cause == nil && !k.heals); err != nil {
		wrong = append(wrong, fmt.Errorf("after a crash: %w", err))
	}
	if before != nil {
		within(f.t, "Close", func() { _ = before.Close() })
	}
	return errors.Join(f.script.unforeseen(wrong)...)
}

// unforeseen ignores errors that keys with equal bits of their hashes cause: a slot then has
// sixteen times as many keys as it would have by chance, and where the index has no room to grow,
// its bucket becomes larger than allowed.
func (s faultScript) unforeseen(errs []error) []error {
	return slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return s.skewed && errors.Is(err, bucketfile.ErrTooLarge) })
}

// faultSteps returns which of a script's operations are made to fail: number first, and every
// step-th after it.
func faultSteps(t *testing.T, script faultScript, seed uint64, ops int) (first, step int) {
	runs := script.runs
	if testing.Short() {
		runs = 4
	}
	share := os.Getenv(testseed.FaultsVariable)
	switch {
	case share == "every":
		return 0, 1
	case share != "":
		if _, err := fmt.Sscanf(share, "%d/%d", &first, &step); err != nil || first < 1 || first > step {
			t.Fatalf(`%s=%s: want "every", or a share such as "2/8"`, testseed.FaultsVariable, share)
		}
		return first - 1, step
	case runs > 0:
		step = max(1, ops/runs)
		return int(seed % uint64(step)), step
	}
	return 0, 1
}

// TestSSDFaults makes operations of scripts fail, one after the other, in several ways: every
// operation of the script that does everything, and some operations of the longer scripts. No call
// may hang, errors must wrap their cause, and rows must never be wrong. If only that operation fails,
// the table must continue to work. A crash at the end must leave a committed snapshot; with a dead
// disk, that is the same as a crash at the operation that failed.
func TestSSDFaults(t *testing.T) {
	for _, script := range faultScripts {
		for _, kind := range faultKinds {
			t.Run(script.name+"/"+kind.name, func(t *testing.T) { failThrough(t, script, kind) })
		}
	}
}

func failThrough(t *testing.T, script faultScript, kind faultKind) {
	seed := testseed.Of(t)
	whole := kind.failFrom(t, script, seed, math.MaxInt-10)
	if err := errors.Join(script.unforeseen(append(whole.errs, whole.table.Close()))...); err != nil {
		t.Fatal(err)
	}
	first, step := faultSteps(t, script, seed, whole.ops)
	failed, missed := 0, 0
	n := first
	// Runs differ by what the background does when: one that ends before its
	// n-th operation is not the end.
	for ; missed < 3; n += step {
		f := kind.failFrom(t, script, seed, n)
		if f.ops <= n {
			missed++
		}
		if len(f.errs) > 0 {
			failed++
		}
		if err := kind.check(f, n); err != nil {
			t.Fatalf("%s, seed %d, operation %d of %d: %v", kind.name, seed, n, f.ops, err)
		}
	}
	t.Logf("seed %d: %d operations: from %d on every %d failed, which the table noticed %d times", seed, whole.ops, first, step, failed)
	// Some operations make no difference: a sample may hit only those.
	if step == 1 && failed == 0 {
		t.Error("no failed operation was noticed")
	}
}
