package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/internal/testseed"
	"aibox/sparsetable"
)

// errDisk is what a faulty disk says.
var errDisk = fmt.Errorf("the disk is faulty: %w", unix.EIO)

// faultyDisk fails some of the operations on disk of a run whose table is in memory.
type faultyDisk struct {
	sparsetable.OSFS
	mu    sync.Mutex
	on    bool
	count int               // operations while it was on
	fails func(n int) error // whether operation number n fails, from 1 on
}

func (d *faultyDisk) ask(string, string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.on {
		return nil
	}
	d.count++
	return d.fails(d.count)
}

// turn switches faults on or off.
func (d *faultyDisk) turn(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on = on
}

// inject has the files of a run fail as d says, until the test ends.
func (d *faultyDisk) inject(t *testing.T, o *Options) {
	o.tableFS = d
	diskfault.Inject(d.ask)
	t.Cleanup(func() { diskfault.Inject(nil) })
}

type faultyFile struct {
	sparsetable.File
	disk *faultyDisk
}

func (d *faultyDisk) Create(name string) (sparsetable.File, error) {
	if err := d.ask("create", name); err != nil {
		return nil, err
	}
	f, err := d.OSFS.Create(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

func (d *faultyDisk) Rename(from, to string) error {
	return errors.Join(d.ask("rename", to), d.OSFS.Rename(from, to))
}

func (d *faultyDisk) Remove(name string) error {
	if err := d.ask("remove", name); err != nil {
		return err
	}
	return d.OSFS.Remove(name)
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.disk.ask("write", ""); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *faultyFile) Sync() error { return errors.Join(f.disk.ask("sync", ""), f.File.Sync()) }

// TestEveryOperationOfASnapshotFails fails each operation on disk of one snapshot, one after
// the other. The run goes on with the snapshot before, from which another process can go on,
// and in the end there are the model and the reports of a run without faults.
func TestEveryOperationOfASnapshotFails(t *testing.T) {
	const snapshot = 3 // the one that fails
	left := job(t, "fm")
	want := outcome(t, left, train(t, left))
	for n := 1; ; n++ {
		for _, killed := range []bool{false, true} {
			j := job(t, "fm", everyPass)
			disk := &faultyDisk{fails: func(i int) error {
				if i == n {
					return errDisk
				}
				return nil
			}}
			opts, passes := quiet, 0
			c := newCrash(t, j)
			opts.afterPass = func(_ context.Context, r *run) error {
				r.snapshots.wait()
				disk.turn(false)
				if passes++; passes == snapshot {
					disk.turn(true) // while the snapshot of this pass is written
				}
				if killed && passes == snapshot+1 {
					c.now()
					return errCrash
				}
				return nil
			}
			disk.inject(t, &opts)
			s, err := Train(t.Context(), j, opts)
			diskfault.Inject(nil)
			if killed {
				if !errors.Is(err, errCrash) {
					t.Fatalf("operation %d: %v", n, err)
				}
				c.happened()
				s = train(t, j)
				if len(s.Resumed) != 1 {
					t.Errorf("operation %d: went on at %+v", n, s.Resumed)
				}
			} else if err != nil {
				t.Fatalf("operation %d: %v", n, err)
			}
			if disk.count < n { // no operation failed
				if n < 10 {
					t.Fatalf("a snapshot has only %d operations", disk.count)
				}
				return
			}
			if s.Snapshots.Failed > 1 || s.Snapshots.Taken == 0 {
				t.Errorf("operation %d: %+v", n, s.Snapshots)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
			checkOneSnapshot(t, j)
		}
	}
}

// TestOperationsFailWhileGoingOn fails operations on disk of a process that goes on with
// a run, until the process gives up or is done. Then one without faults completes the run,
// wherever it begins, and makes the same model and reports.
func TestOperationsFailWhileGoingOn(t *testing.T) {
	left := job(t, "fm")
	want := outcome(t, left, train(t, left))
	rng := testseed.Rand(t)
	gaveUp := 0
	for i := range 12 {
		j := job(t, "fm", everyPass)
		if !killedAt(t, j, 3, true) {
			t.Fatal("not killed")
		}
		from := 1
		if i > 0 {
			from += rng.IntN(60)
		}
		disk := &faultyDisk{on: true, fails: func(n int) error {
			if n >= from {
				return errDisk
			}
			return nil
		}}
		opts := quiet
		disk.inject(t, &opts)
		s, err := Train(t.Context(), j, opts)
		diskfault.Inject(nil)
		if err != nil {
			if gaveUp++; !errors.Is(err, errDisk) {
				t.Fatalf("from operation %d on: %v", from, err)
			}
			s = train(t, j)
		}
		got := outcome(t, j, s)
		got.compare(t, &want)
		checkOneSnapshot(t, j)
	}
	if gaveUp == 0 {
		t.Error("no process has given up")
	}
}

// smallDisk has room for so many bytes of snapshots of a table.
type smallDisk struct {
	sparsetable.OSFS
	mu    sync.Mutex
	room  int64
	sizes map[string]int64
}

type fileOnSmallDisk struct {
	sparsetable.File
	disk *smallDisk
	name string
}

func (d *smallDisk) Create(name string) (sparsetable.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizes[name] = 0
	f, err := d.OSFS.Create(name)
	return &fileOnSmallDisk{f, d, name}, err
}

func (d *smallDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizes[to] = d.sizes[from]
	delete(d.sizes, from)
	return d.OSFS.Rename(from, to)
}

func (d *smallDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sizes, name)
	return d.OSFS.Remove(name)
}

func (f *fileOnSmallDisk) Write(p []byte) (int, error) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	used := int64(len(p))
	for _, n := range d.sizes {
		used += n
	}
	if used > d.room {
		return 0, fmt.Errorf("write %s: %w", f.name, unix.ENOSPC)
	}
	d.sizes[f.name] += int64(len(p))
	return f.File.Write(p)
}

// tableBytes is the size of the table's snapshot of a model.
func tableBytes(t *testing.T, j *configs.Job) (n int64) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(j.Output.ModelDir, "gen-*", "table", "snapshot*"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// TestDiskWithoutRoomForSnapshots checks that a job whose disk has room for its model, but not for
// a snapshot beside it, makes the model all the same.
func TestDiskWithoutRoomForSnapshots(t *testing.T) {
	for name, set := range map[string][]string{"one epoch": nil, "early stopping": {"training.epochs=3", "training.early_stopping={metric: log_loss, patience: 2}"}} {
		t.Run(name, func(t *testing.T) {
			left := job(t, "fm", append(set, "snapshots.every=none")...)
			want := outcome(t, left, train(t, left))
			size := tableBytes(t, left)
			for _, share := range []float64{1.1, 1.5, 1.95} {
				if set != nil {
					share++ // the best epoch and the last one are on disk at the same time
				}
				j := job(t, "fm", append(set, everyPass)...)
				opts := quiet
				opts.tableFS = &smallDisk{room: int64(share * float64(size)), sizes: map[string]int64{}}
				opts.afterPass = func(_ context.Context, r *run) error {
					r.snapshots.wait() // so that each pass begins a snapshot
					return nil
				}
				s, err := Train(t.Context(), j, opts)
				if err != nil {
					t.Fatalf("room for %g models: %v", share, err)
				}
				if s.Snapshots.Taken == 0 || s.Snapshots.Failed == 0 && share < 1.2 {
					t.Errorf("room for %g models: %+v", share, s.Snapshots)
				}
				got := outcome(t, j, s)
				got.compare(t, &want)
				checkOneSnapshot(t, j)
			}
		})
	}
}

// TestSnapshotsKeepSpaceFree checks that no snapshot is begun if it might fill the disk, and that
// the log says why.
func TestSnapshotsKeepSpaceFree(t *testing.T) {
	j := job(t, "fm", everyPass)
	var said bytes.Buffer
	opts := quiet
	opts.Logger = slog.New(slog.NewTextHandler(&said, nil)) // which locks
	opts.freeBytes = func(string) int64 { return spareBytes }
	s, err := Train(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	if s.Snapshots.Taken > 0 || s.Snapshots.Failed == 0 || !strings.Contains(said.String(), "left, and a snapshot may take") {
		t.Errorf("%+v; said %s", s.Snapshots, said.String())
	}
}

// fullTable is a table whose Pull finds no space so often.
type fullTable struct {
	sparsetable.Table
	left int
}

func (f *fullTable) Pull(ctx context.Context, keys []uint64, mode sparsetable.PullMode) (*sparsetable.WorkingSet, error) {
	if f.left > 0 {
		f.left--
		return nil, fmt.Errorf("pull: %w", sparsetable.ErrNoSpace)
	}
	return f.Table.Pull(ctx, keys, mode)
}

// TestFullTableGetsSpace checks that if the table finds no space, the snapshots are deleted and
// training continues. Without any snapshots it ends with the error.
func TestFullTableGetsSpace(t *testing.T) {
	left := job(t, "fm", "training.epochs=2")
	want := outcome(t, left, train(t, left))
	for times := 1; times <= 2; times++ {
		j := job(t, "fm", everyPass, "training.epochs=2")
		opts := quiet
		full := false
		opts.afterPass = func(_ context.Context, r *run) error {
			if r.state.Epoch == 1 && !full { // the second epoch pulls from this table
				full = true
				r.snapshots.wait() // which may use the table
				r.table.Table = &fullTable{r.table.Table, times}
			}
			return nil
		}
		s, err := Train(t.Context(), j, opts)
		if times == 2 {
			if !errors.Is(err, sparsetable.ErrNoSpace) || errors.As(err, new(*ResumableError)) {
				t.Errorf("ended with %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Snapshots.Taken == 0 {
			t.Errorf("%+v", s.Snapshots)
		}
		got := outcome(t, j, s)
		got.compare(t, &want)
		checkOneSnapshot(t, j)
	}
}
