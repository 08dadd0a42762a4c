package ssd_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
)

const (
	// killDirVariable makes the test binary train the table in that directory
	// until it is killed.
	killDirVariable = "AIBOX_TEST_KILL_DIR"
	// killDirsVariable is the number of its directories.
	killDirsVariable = "AIBOX_TEST_KILL_DIRS"

	killKeys     = 12000
	killBatch    = 600
	killKept     = 2 // snapshots
	killLogName  = "log"
	killDoing    = "doing" // file with a byte: what the child is doing
	killMaxDelay = 200 * time.Millisecond
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDirVariable); dir != "" {
		go func() { // the pipe ends with the test, whatever ends that
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		dirs, err := strconv.Atoi(os.Getenv(killDirsVariable))
		if err == nil {
			err = trainUntilKilled(dir, dirs)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// killOptions returns the options of a table that is several times as large as its cache, in one or
// two directories of the real file system.
func killOptions(dir string, dirs int) sparsetable.Options {
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout}
	o.SSD.Dirs = []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}[:dirs]
	o.SSD.MaxSpaceAmplification = 1.2
	o.MemoryBytes = smallest(o.Layout, o.SSD, 3*killBatch) + 64<<10
	return o
}

// killBatchKeys returns the keys of a step of training, which parent and child compute in the same
// way. Most steps have few keys, so that most snapshots refer to delta files of earlier ones.
func killBatchKeys(step uint64) []uint64 {
	rng := rand.New(rand.NewPCG(step, 7))
	chosen := make(map[uint64]bool, killBatch)
	keys := make([]uint64, 0, killBatch)
	n := killBatch
	if step/8%4 != 0 {
		n = killBatch / 20
	}
	for len(keys) < n {
		// Half of them are often there, half are from the whole table.
		k := uint64(rng.IntN(killKeys))
		if len(keys)%2 == 0 {
			k %= killKeys / 10
		}
		k = (k + 1) * 0x9e3779b97f4a7c15
		if !chosen[k] {
			chosen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// killRow returns a row in the model of the table. A lost or repeated update shows in count, and a
// row of another step or key shows in value.
type killRow struct {
	value float32
	count uint32
}

func killValue(key, step uint64) float32 {
	return float32((key>>20 ^ step*0x2545f4914f6cdd1d) & (1<<24 - 1))
}

// trainUntilKilled continues from the newest snapshot, whose record is its number of steps. It
// writes "begin STEP" to its log before a snapshot, "done ID STEP" when the snapshot is committed,
// and "drop ID" before it is dropped. Every few steps it empties a file, as compaction does.
func trainUntilKilled(dir string, dirs int) error {
	ctx := context.Background()
	doing, err := newDoing(dir)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, killLogName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	note := func(format string, args ...any) error {
		if _, err := fmt.Fprintf(log, format+"\n", args...); err != nil {
			return err
		}
		return log.Sync()
	}
	o := killOptions(dir, dirs)
	tab, err := sparsetable.Open(ctx, o)
	if err != nil {
		return err
	}
	doing.set(doingOpened)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	kept, err := tab.Snapshots()
	if err != nil {
		return err
	}
	step := uint64(0)
	if n := len(kept); n > 0 {
		if step, err = strconv.ParseUint(string(kept[n-1].Record), 10, 64); err != nil {
			return err
		}
	}
	var pending *sparsetable.PendingSnapshot
	settle := func() error {
		if pending == nil {
			return nil
		}
		info, err := pending.Wait()
		if err != nil {
			return err
		}
		pending = nil
		doing.clear(doingSnapshot)
		if err := note("done %d %s", info.ID, info.Record); err != nil {
			return err
		}
		for kept = append(kept, info); len(kept) > killKept; kept = kept[1:] {
			if err := note("drop %d", kept[0].ID); err != nil {
				return err
			}
			if err := tab.DropSnapshot(kept[0].ID); err != nil {
				return err
			}
		}
		return nil
	}
	// Rows of the next step are pinned when a snapshot is taken, and updated as
	// soon as it returns.
	ws, err := tab.Pull(ctx, killBatchKeys(step+1), sparsetable.PullCreate)
	for err == nil {
		step++
		for i, k := range killBatchKeys(step) {
			row := ws.Row(i)
			row[0] = killValue(k, step)
			st := o.Layout.Stats(row)
			st.Count++
			o.Layout.SetStats(row, st)
		}
		var next *sparsetable.WorkingSet
		if next, err = tab.Pull(ctx, killBatchKeys(step+1), sparsetable.PullCreate); err != nil {
			break
		}
		if step%4 == 0 {
			if err := settle(); err != nil {
				return err
			}
			if err := note("begin %d", step); err != nil {
				return err
			}
			doing.set(doingSnapshot)
			if pending, err = tab.Snapshot(ctx, strconv.AppendUint(nil, step, 10)); err != nil {
				return err
			}
		}
		ws.Release()
		ws = next
		if step%3 == 0 {
			doing.set(doingCompaction)
			if _, err = ssd.EmptyAFile(ctx, tab, rng); err != nil {
				break
			}
			doing.clear(doingCompaction)
		}
	}
	return err
}

// What a child is doing, as bits.
const (
	doingOpened = 1 << iota
	doingSnapshot
	doingCompaction
)

// doing tells the parent what the child is doing, by means of a file: what was written to the
// kernel survives a kill.
type doing struct {
	f    *os.File
	bits byte
}

func newDoing(dir string) (*doing, error) {
	f, err := os.Create(filepath.Join(dir, killDoing))
	return &doing{f: f}, err
}

func (d *doing) set(bit byte) {
	d.bits |= bit
	_, _ = d.f.WriteAt([]byte{d.bits}, 0) // statistics
}

func (d *doing) clear(bit byte) {
	d.bits &^= bit
	_, _ = d.f.WriteAt([]byte{d.bits}, 0)
}
