package trainer

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/trainer/report"
)

// badBlocks is a bucket file of a table that can no longer be read, although its disk works
// otherwise.
type badBlocks struct {
	mu      sync.Mutex
	names   map[string]bool // paths of files of which the first that is read is the one
	bad     os.FileInfo     // nil: none was read yet
	path    string
	open    *os.File // of path, so that no other file gets its number
	header  bool     // all blocks are bad, also those that are read when the file is opened
	renames bool     // renames fail, too
	opened  bool     // the next read is that of the header
	reads   int      // that have failed
}

func (b *badBlocks) fault(operation, path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bad == nil && operation == "read" && b.names[path] {
		b.bad, _ = os.Stat(path)
		b.path = path
		b.open, _ = os.Open(path)
	}
	if b.bad == nil {
		return nil
	}
	if operation == "rename" && b.renames && filepath.Dir(path) == filepath.Dir(b.path) {
		return syscall.EIO
	}
	if info, err := os.Stat(path); err != nil || !os.SameFile(info, b.bad) {
		return nil
	}
	switch {
	case operation == "open":
		b.opened = true
	case operation == "read" && b.opened && !b.header:
		b.opened = false
	case operation == "read":
		b.reads++
		return syscall.EIO
	}
	return nil
}

// trainOnBadBlocks trains a job. A bucket file in directory i that exists after pass at can no
// longer be read from then on.
func trainOnBadBlocks(t *testing.T, j *configs.Job, at, i int, b *badBlocks) (*report.Summary, string, error) {
	t.Helper()
	var log syncBuffer
	opts, passes := quiet, 0
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		if passes++; passes != at {
			return nil
		}
		if r.snapshots.uploads != nil && !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		names, err := filepath.Glob(filepath.Join(r.table.dirs[i], "*.bucket"))
		b.mu.Lock()
		defer b.mu.Unlock()
		b.names = map[string]bool{}
		for _, name := range names {
			b.names[name] = true
		}
		return err
	}
	diskfault.Inject(b.fault)
	defer diskfault.Inject(nil)
	s, err := Train(t.Context(), j, opts)
	_ = b.open.Close() // also of none
	if b.bad == nil {
		t.Fatalf("no bucket file was read: %v\n%s", err, log.String())
	}
	return s, log.String(), err
}

// TestBadBlocks checks a bucket file of the table that can no longer be read. After the second
// failure it counts as lost, and the run goes back to the last complete snapshot, or to the
// beginning, in the same process. It must make the model and the reports of an undisturbed run.
func TestBadBlocks(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	for i, remote := range []bool{true, false} {
		t.Run(fmt.Sprintf("remote=%v", remote), func(t *testing.T) {
			set := onTwoDisks()
			if remote {
				set = append(set, "snapshots.remote="+t.TempDir())
			}
			j := job(t, "fm", set...)
			b := new(badBlocks)
			s, said, err := trainOnBadBlocks(t, j, 13, i, b)
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
			if len(s.Recoveries) != 1 || s.Recoveries[0].Mode != configs.RecoveryFull || (s.Recoveries[0].From == j.Snapshots.Remote) != remote {
				t.Errorf("%+v\n%s", s.Recoveries, said)
			}
			if !strings.Contains(said, "Replace the disk. The file is set aside") || !strings.Contains(said, fmt.Sprintf("file=%q", b.path)) || b.reads < 2 {
				t.Errorf("after %d reads, it does not say which file is set aside:\n%s", b.reads, said)
			}
			if names, _ := filepath.Glob(filepath.Join(j.SparseTable.Dirs[i], "*", "*.unreadable")); len(names) > 0 {
				t.Errorf("left are %v", names)
			}
			checkOneSnapshot(t, j)
		})
	}
}

// TestBadBlocksPartialRecovery checks that with recovery.mode partial only the rows of the file are
// reset to the snapshot, or those of its directory if not even the file's header can be read.
func TestBadBlocksPartialRecovery(t *testing.T) {
	for _, header := range []bool{false, true} {
		j := partialJob(t, "snapshots.remote="+t.TempDir(), "snapshots.remote_every=1000 snapshots", "recovery.max_lost_samples=1")
		s, said, err := trainOnBadBlocks(t, j, 6, 1, &badBlocks{header: header})
		if err != nil {
			t.Fatalf("header %v: %v\n%s", header, err, said)
		}
		n := len(s.Recoveries)
		if n == 2 && s.Recoveries[0].From == "the last snapshot on this machine" {
			n-- // it had taken another snapshot from there before the file could not be read again
		}
		if n != 1 || len(s.Resumed) == 0 {
			t.Fatalf("header %v: went on at %+v, recoveries %+v\n%s", header, s.Resumed, s.Recoveries, said)
		}
		if rec := s.Recoveries[len(s.Recoveries)-1]; rec.Mode != configs.RecoveryPartial || rec.RowsLost == 0 || rec.Again != 0 {
			t.Errorf("header %v: %+v\n%s", header, rec, said)
		}
	}
}

// TestBadBlocksOnABrokenDisk checks that if the file cannot be set aside either, the job ends with
// an error that says what to do, and another process continues without the disk.
func TestBadBlocksOnABrokenDisk(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	j := job(t, "fm", onTwoDisks("snapshots.remote="+t.TempDir())...)
	b := &badBlocks{renames: true}
	_, said, err := trainOnBadBlocks(t, j, 13, 0, b)
	if err == nil || !strings.Contains(err.Error(), "the file cannot be set aside either") || !strings.Contains(err.Error(), replaceDisk) || !strings.Contains(err.Error(), b.path) {
		t.Fatalf("%v\n%s", err, said)
	}
	j.SparseTable.Dirs = j.SparseTable.Dirs[1:]
	if err := os.RemoveAll(filepath.Dir(b.path)); err != nil {
		t.Fatal(err)
	}
	s, _ := trainAloud(t, j)
	got := outcome(t, j, s)
	got.compare(t, &want)
}

// TestBadBlocksWhileUploading checks a bucket file that uploads cannot read, although training can.
// After two attempts, the job begins again. After two more, the file counts as lost, and the run
// goes back to the last complete snapshot. It must make the model of an undisturbed run, and
// uploads must continue.
func TestBadBlocksWhileUploading(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	j := job(t, "fm", onTwoDisks("snapshots.remote="+t.TempDir())...)
	var mu sync.Mutex
	var dir, path string // of the table; of the file
	var bad os.FileInfo
	var held *os.File
	defer func() { _ = held.Close() }()
	reads := 0
	diskfault.Inject(func(operation, at string) error {
		if operation != "read to copy" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		info, err := os.Stat(at)
		if bad == nil && err == nil && dir != "" && filepath.Dir(at) == dir {
			bad, path = info, at
			if held, err = os.Open(at); err != nil { // else its number is given to another file once it is deleted
				t.Error(err)
			}
		}
		if bad == nil || err != nil || !os.SameFile(info, bad) {
			return nil
		}
		reads++
		return syscall.EIO
	})
	defer diskfault.Inject(nil)
	var log syncBuffer
	opts, passes, uploaded := quiet, 0, false
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		if !uploaded || len(r.recoveries) == 0 {
			uploaded = r.snapshots.uploads.Finish(ctx) && len(r.recoveries) > 0
		}
		if passes++; passes == 6 {
			mu.Lock()
			defer mu.Unlock()
			dir = r.table.dirs[1]
		}
		return nil
	}
	s, err := Train(t.Context(), j, opts)
	if err != nil || reads == 0 {
		t.Fatalf("%d reads have failed: %v\n%s", reads, err, log.String())
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
	if len(s.Recoveries) != 1 || s.Recoveries[0].From != j.Snapshots.Remote || !uploaded || s.Snapshots.Remote.Error != "" {
		t.Errorf("after %d reads that failed: uploaded since then: %v, %+v, %+v\n%s", reads, uploaded, s.Snapshots.Remote, s.Recoveries, log.String())
	}
	if said := log.String(); strings.Count(said, "the job starts again") != 2 || !strings.Contains(said, "recovered as if it were lost\" file="+path) {
		t.Errorf("it does not begin again twice, and set aside %s:\n%s", path, said)
	}
}
