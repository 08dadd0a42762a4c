package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/sparsetable"
	"aibox/trainer/transfer"
)

// stopVariable makes a child process stop for ever at that operation on disk, and print stopped.
const stopVariable, stopped = "AIBOX_TEST_STOP_AT", "the operation is not done"

// stopAtOperation does what stopVariable says.
func stopAtOperation() {
	at, err := strconv.ParseInt(os.Getenv(stopVariable), 10, 64)
	if err != nil {
		return
	}
	var n atomic.Int64
	diskfault.Inject(func(string, string) error {
		if i := n.Add(1); i >= at {
			if i == at {
				fmt.Fprintln(os.Stderr, stopped)
			}
			time.Sleep(tooLong)
		}
		return nil
	})
}

// killAtOperation runs aibox and kills it before it does an operation on disk. ended reports that
// it ended before that.
func killAtOperation(t *testing.T, at int, args ...string) (ended bool) {
	t.Helper()
	t.Setenv(stopVariable, strconv.Itoa(at))
	cmd, stderr := startWatched(t, args...)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if lines.Text() == stopped {
			_ = cmd.Process.Kill()
			_, _ = io.Copy(io.Discard, stderr)
			_ = cmd.Wait()
			return false
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("aibox %s: %v", strings.Join(args, " "), err)
	}
	return true
}

// operations returns the operations on disk of a command line, as "operation path".
func operations(t *testing.T, args ...string) (all []string) {
	t.Helper()
	found := make(chan string, 1<<16)
	diskfault.Inject(func(operation, path string) error {
		found <- operation + " " + path
		return nil
	})
	ok(t, args...)
	diskfault.Inject(nil)
	close(found)
	for o := range found {
		all = append(all, o)
	}
	return all
}

// TestRestoreKilled kills the program while it restores a model, at operations on disk: when the
// first rows are written after the model was published, when the last files are recorded as
// complete, when the origin of the model is recorded, and at some random ones. After that there
// must be no model, or one that can be read, and the same command must complete it, even if that is
// killed, too.
func TestRestoreKilled(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "job.yaml", killJob)
	ok(t, "generate", "job.yaml")
	ok(t, "train", "job.yaml", "--set", "output.remote=far")
	want, metrics := inspected(t, "model"), ok(t, "eval", "--model-dir", "model", "--data", "eval.tsv", "--json")
	n, rng := kills(t)
	restore := func(to string) []string {
		return []string{"restore", "--from", "far", "--to", to, "--dirs", to + "-a", "--dirs", to + "-b"}
	}
	all := operations(t, restore("counted")...)
	first := 1 + slices.IndexFunc(all, func(o string) bool { return strings.HasPrefix(o, "write ") && strings.HasSuffix(o, ".bucket") })
	last := 1 + slices.IndexFunc(all, func(o string) bool {
		return strings.HasPrefix(o, "remove ") && strings.HasSuffix(o, sparsetable.ArrivingName)
	})
	noted := 1 + slices.IndexFunc(all, func(o string) bool { return strings.Contains(o, transfer.ReportName) })
	if first == 0 || last <= first || noted == 0 {
		t.Fatalf("the operations are others: %d, %d of %d", first, last, len(all))
	}
	at := []int{first, last, noted}
	for range n {
		at = append(at, 1+rng.IntN(len(all)))
	}
	for i, k := range at {
		to := fmt.Sprint("new", i)
		ended := killAtOperation(t, k, restore(to)...)
		usable, whole := disk.Exists(filepath.Join(to, "MODEL.json")), arrivedIn(t, to)
		t.Logf("kill %d at operation %d of %d: done %v, usable %v, whole %v", i, k, len(all), ended, usable, whole)
		if k == first && (!usable || whole) {
			t.Fatal("the model was not published before its rows were written")
		}
		if usable {
			if got := inspected(t, to); got != want {
				t.Errorf("digest %s, want %s", got, want)
			}
			if got := ok(t, "eval", "--model-dir", to, "--data", "eval.tsv", "--json"); strings.ReplaceAll(got, `"`+to+`"`, `"model"`) != metrics {
				t.Errorf("%s, want %s", got, metrics)
			}
			if !strings.Contains(read(t, filepath.Join(to, transfer.ReportName)), "far") {
				t.Error("it is not known that the remote directory has the model: when that is not mounted, a later one is published beneath its mount point")
			}
			if got := ok(t, "generations", to); strings.Contains(got, "have not been fetched from ") == whole {
				t.Errorf("whole: %v:\n%s", whole, got)
			}
		}
		if !whole || !usable {
			ended = killAtOperation(t, 1+rng.IntN(k), restore(to)...)
		}
		if !ended && (!disk.Exists(filepath.Join(to, "MODEL.json")) || !arrivedIn(t, to)) {
			ok(t, restore(to)...)
		}
		if got := inspected(t, to); got != want || !arrivedIn(t, to) {
			t.Errorf("digest %s, want %s", got, want)
		}
		if out := ok(t, "table", "verify", to); !strings.Contains(out, "no faults") {
			t.Errorf("%s", out)
		}
		for _, dir := range []string{"-a", "-b"} {
			if tables, err := os.ReadDir(to + dir); err != nil || len(tables) != 1 {
				t.Errorf("%s holds %v, %v", to+dir, tables, err)
			}
		}
	}
}

// arrivedIn reports whether all files of a restored model are complete.
func arrivedIn(t *testing.T, to string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(to+"-*", "*", sparsetable.ArrivingName))
	if err != nil {
		t.Fatal(err)
	}
	return len(found) == 0
}
