package ssd_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// killed is what the parent process knows of the table.
type killed struct {
	t    *testing.T
	dir  string
	dirs int
	step uint64             // of the state in rows
	rows map[uint64]killRow // by key
	old  map[uint64]map[uint64]killRow
	// lists counts the snapshots with several delta files.
	lists int
}

// advance applies steps of training to the model of the table.
func (k *killed) advance(step uint64) {
	for ; k.step < step; k.step++ {
		for _, key := range killBatchKeys(k.step + 1) {
			k.rows[key] = killRow{killValue(key, k.step+1), k.rows[key].count + 1}
		}
	}
}

// promised reads the log. It returns the last snapshot known to be committed, the last one that was
// begun, and those that must still exist.
func (k *killed) promised() (done, begun uint64, ids map[uint64]uint64) {
	k.t.Helper()
	b, err := os.ReadFile(filepath.Join(k.dir, killLogName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	ids = map[uint64]uint64{}
	for line := range bytes.Lines(b) {
		var id, step uint64
		switch {
		case line[len(line)-1] != '\n': // killed within it
		case scan(line, "begin %d\n", &step):
			begun = step
		case scan(line, "done %d %d\n", &id, &step):
			done, ids[id] = step, step
		case scan(line, "drop %d\n", &id):
			delete(ids, id)
		default:
			k.t.Fatalf("log line %q", line)
		}
	}
	return done, begun, ids
}

func scan(line []byte, format string, into ...any) bool {
	n, err := fmt.Sscanf(string(line), format, into...)
	return err == nil && n == len(into)
}

// check compares an open table with the model after a step.
func (k *killed) check(tab sparsetable.Table, step uint64, want map[uint64]killRow) {
	k.t.Helper()
	seen := make(map[uint64]bool, len(want))
	err := tab.Scan(k.t.Context(), func(key uint64, row []float32) error {
		if seen[key] {
			return fmt.Errorf("key %x is there twice", key)
		}
		seen[key] = true
		if have := (killRow{row[0], stressLayout.Stats(row).Count}); have != want[key] {
			return fmt.Errorf("key %x holds %+v, want %+v", key, have, want[key])
		}
		return nil
	})
	if err != nil || len(seen) != len(want) {
		k.t.Fatalf("step %d: %d rows, want %d: %v", step, len(seen), len(want), err)
	}
}

// verify opens the table as it was left. It must have only committed snapshots, among them all that
// were reported, each with its rows.
func (k *killed) verify() {
	k.t.Helper()
	done, begun, promised := k.promised()
	tab, err := sparsetable.Open(k.t.Context(), killOptions(k.dir, k.dirs))
	if err != nil {
		k.t.Fatal(err)
	}
	infos, err := tab.Snapshots()
	if err != nil {
		k.t.Fatal(err)
	}
	steps := map[uint64]uint64{}
	newest := uint64(0)
	for _, info := range infos {
		if newest, err = strconv.ParseUint(string(info.Record), 10, 64); err != nil {
			k.t.Fatal(err)
		}
		steps[info.ID] = newest
		if newest >= k.step {
			k.advance(newest)
			k.old[newest] = maps.Clone(k.rows)
		}
	}
	if newest < done || newest > begun {
		k.t.Fatalf("the table is at step %d: %d was committed, %d begun", newest, done, begun)
	}
	for id, step := range promised {
		if have, ok := steps[id]; !ok || have != step {
			k.t.Fatalf("snapshot %d of step %d is missing, there are %v", id, step, steps)
		}
	}
	k.check(tab, newest, k.rows)
	deltas := map[string]bool{}
	for _, info := range infos {
		names := ssd.DeltasOf(tab, info.ID)
		if len(names) > 1 {
			k.lists++
		}
		for _, name := range names {
			deltas[name] = true
		}
	}
	if err := tab.Close(); err != nil {
		k.t.Fatal(err)
	}
	if len(infos) > 0 {
		v, err := sparsetable.Verify(k.t.Context(), killOptions(k.dir, k.dirs), func(f sparsetable.Fault) { k.t.Error(f) }, nil)
		if err != nil || v.Faults > 0 || v.Snapshots != len(infos) {
			k.t.Fatalf("%+v, %v", v, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(k.dir, "a", "*.delta"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, path := range left {
		if !deltas[filepath.Base(path)] {
			k.t.Fatalf("no snapshot refers to %s", path)
		}
	}
	for id, step := range steps {
		if step == newest {
			continue
		}
		o := killOptions(k.dir, k.dirs)
		o.SnapshotID, o.ReadOnly = id, true
		tab, err := sparsetable.Open(k.t.Context(), o)
		if err != nil {
			k.t.Fatal(err)
		}
		k.check(tab, step, k.old[step])
		if err := tab.Close(); err != nil {
			k.t.Fatal(err)
		}
	}
	kept := slices.Collect(maps.Values(steps))
	maps.DeleteFunc(k.old, func(step uint64, _ map[uint64]killRow) bool { return !slices.Contains(kept, step) })
}

// kill runs a child process for that long, or for that long after it has opened the table, kills
// it, and returns what it was doing.
func (k *killed) kill(after time.Duration, opened bool) (doing byte) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, killDoing), []byte{0}, 0o666); err != nil {
		k.t.Fatal(err)
	}
	path, err := os.Executable()
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), killDirVariable+"="+k.dir, fmt.Sprintf("%s=%d", killDirsVariable, k.dirs))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for opened && k.doing()&doingOpened == 0 && len(ended) == 0 {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-ended:
		k.t.Fatalf("it ended before it was killed: %v\n%s", err, stderr.Bytes())
	case <-time.After(after):
	}
	if err := cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != -1 {
		k.t.Fatalf("exit %d\n%s", code, stderr.Bytes())
	}
	_ = stdin.Close()
	return k.doing()
}

func (k *killed) doing() byte {
	k.t.Helper()
	b, err := os.ReadFile(filepath.Join(k.dir, killDoing))
	if err != nil {
		k.t.Fatal(err)
	}
	if len(b) == 0 {
		return 0 // just created
	}
	return b[0]
}

// TestKill repeatedly kills a process that trains a table on real files, with SIGKILL at random
// moments. What was written to the kernel survives that. Other tests simulate the loss of power,
// with devices in memory.
func TestKill(t *testing.T) {
	kills := tabletest.Kills(t, 8, 3)
	for dirs := 1; dirs <= 2; dirs++ {
		t.Run(fmt.Sprint(dirs, " directories"), func(t *testing.T) { killOften(t, dirs, (kills+dirs-1)/2) })
	}
}

func killOften(t *testing.T, dirs, kills int) {
	rng := testseed.Rand(t)
	k := &killed{t: t, dir: t.TempDir(), dirs: dirs, rows: map[uint64]killRow{}, old: map[uint64]map[uint64]killRow{}}
	opening, snapshots, compactions := 0, 0, 0
	for i := range kills {
		delay, opened := time.Duration(rng.Int64N(int64(killMaxDelay))), true
		if i%4 == 3 { // some while it opens the table, which takes less time
			delay, opened = delay/8, false
		}
		doing := k.kill(delay, opened)
		switch {
		case doing&doingOpened == 0:
			opening++
		case doing&doingSnapshot != 0:
			snapshots++
		}
		if doing&doingCompaction != 0 {
			compactions++
		}
		k.verify()
		t.Logf("kill %d after %v: step %d, %d rows, doing %03b", i, delay, k.step, len(k.rows), doing)
	}
	t.Logf("%d snapshots that were found had several delta files", k.lists)
	t.Logf("of %d kills %d were while it opened the table, %d while a snapshot was written, %d while a file was emptied", kills, opening, snapshots, compactions)
	if kills >= 20 && k.step == 0 {
		t.Error("no snapshot was ever committed")
	}
	if kills >= 50 && (opening == 0 || snapshots == 0 || compactions == 0) {
		t.Error("too few of some kind of restart: see the log above")
	}
}
