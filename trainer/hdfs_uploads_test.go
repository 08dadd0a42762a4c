package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/hdfstest"
	"aibox/internal/testseed"
	"aibox/sparsetable/tabletest"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/report"
)

// TestSnapshotsToHDFS uploads snapshots to a real HDFS cluster, parts of which fail in the middle
// of an object. Processes are killed there, and HDFS refuses uploads. Then the machine is lost, and
// another one must make the model of an undisturbed machine.
func TestSnapshotsToHDFS(t *testing.T) {
	t.Parallel() // it waits for the cluster most of the time
	a := newAway(t)
	rng := testseed.Rand(t)
	for range tabletest.Kills(t, 1, 1) {
		for _, part := range []struct {
			name  string
			fails func(*testing.T, hdfstest.Way, int64) *outage
			says  string
			ends  bool // when it says so; otherwise, when the job has made its model
		}{
			{"DataNode killed", a.dataNodeDies, "HDFS: a DataNode failed; the block is written again without it", false},
			{"NameNode stopped", a.nameNodeStops, triesAgain, true},
		} {
			at := 1 + rng.Int64N(objectBytes)
			t.Run(fmt.Sprintf("%s at byte %d", part.name, at), func(t *testing.T) {
				j := a.job(t, "/uploads") // it is empty after each test
				var o *outage
				var said atomic.Bool
				opts := quiet
				opts.Logger = heard(part.says, func() {
					said.Store(true)
					if part.ends {
						o.over()
					}
				})
				passes := 0
				opts.afterPass = func(ctx context.Context, r *run) error {
					r.snapshots.wait()
					if !r.snapshots.uploads.Finish(ctx) {
						t.Error("a snapshot was not uploaded")
					}
					if passes++; passes == 7 {
						o = part.fails(t, hdfstest.ToDataNode, at)
					}
					if o != nil && o.happened() {
						return errCrash
					}
					return nil
				}
				if _, err := Train(t.Context(), j, opts); !errors.Is(err, errCrash) {
					t.Fatalf("the run was to be killed, but %v", err)
				}
				if !said.Load() {
					t.Errorf("nothing has said %q", part.says)
				}
				lost(t, j)
				a.whole(t, j, train(t, j), "/uploads")
			})
		}
		at, kills := manifestBytes+rng.Int64N(objectBytes-manifestBytes), make([]uploadKill, 2)
		for i := range kills {
			kills[i] = uploadKill{1 + rng.IntN(3), 1 + rng.IntN(4)}
		}
		t.Run(fmt.Sprintf("processes killed at byte %d of %v", at, kills), func(t *testing.T) { a.killsUploads(t, at, kills) })
	}
	t.Run("refused", a.refusesUploads)
	t.Run("two jobs", a.twoJobs)
}

// uploadKill says where a process is killed: in this one of its uploads or a later one, when that
// many connections have carried the number of bytes that the test has drawn.
type uploadKill struct{ upload, stream int }

func (k uploadKill) String() string { return fmt.Sprintf("stream %d of upload %d", k.stream, k.upload) }

// killsUploads kills the processes of a job in the middle of an object that they upload, whose
// leases remain, and then simulates the loss of the machine. The job must be resumed from the last
// snapshot that was uploaded.
func (a *away) killsUploads(t *testing.T, at int64, kills []uploadKill) {
	j := a.job(t, "/leases")
	var text bytes.Buffer
	if err := j.Show(&text); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var uploaded int64                 // the step of the last snapshot
	crashAfter(t, j, 2, func(r *run) { // that of the pass before is what another machine can go on from in any case
		r.snapshots.wait()
		if !r.snapshots.uploads.Finish(t.Context()) {
			t.Error("a snapshot was not uploaded")
		}
		uploaded = r.snapshots.uploads.Summary().Step
	})
	for i, k := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashVariable+"=-1 "+file)
		started := make(chan struct{})
		var arm func()
		arm = func() {
			a.At(t, hdfstest.ToDataNode, at, func(int) {
				if <-started; k.stream > 1 {
					k.stream--
					arm()
					return
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
			})
		}
		said := uploadLog{before: k.upload - 1, then: arm}
		if cmd.Stderr = &said; said.before == 0 {
			arm()
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		close(started)
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("it was not killed: %v\n%s", err, said.text.String())
		}
		if !strings.Contains(said.text.String(), "training resumes from the snapshot of an interrupted run") {
			t.Errorf("process %d has not gone on from a snapshot:\n%s", i, said.text.String())
		}
		if said.step > 0 {
			uploaded = said.step
		}
		open := 0
		for _, name := range a.List(t, "/leases/objects") {
			if strings.HasSuffix(name, ".aibox.tmp") {
				open++
			}
		}
		if open == 0 {
			t.Errorf("process %d: it has left no file that it was writing: the test shows nothing", i)
		}
	}
	lost(t, j)
	s := train(t, j)
	a.whole(t, j, s, "/leases")
	if n := len(s.Resumed); n == 0 || s.Resumed[n-1].Step != uploaded {
		t.Errorf("it has gone on at %+v; the last snapshot that was uploaded is of step %d", s.Resumed, uploaded)
	}
}

// uploadLog is the log of a process that uploads snapshots. It calls then once that many of them
// were uploaded.
type uploadLog struct {
	text   strings.Builder
	read   int // bytes of whole lines
	before int
	then   func()
	step   int64 // of the last that was uploaded
}

func (l *uploadLog) Write(p []byte) (int, error) {
	n, err := l.text.Write(p)
	for {
		line, _, whole := strings.Cut(l.text.String()[l.read:], "\n")
		if !whole {
			return n, err
		}
		l.read += len(line) + 1
		_, rest, is := strings.Cut(line, `msg="a snapshot was uploaded" step=`)
		if !is {
			continue
		}
		if _, err := fmt.Sscan(rest, &l.step); err != nil {
			return n, err
		}
		if l.before--; l.before == 0 {
			l.then()
		}
	}
}

// refusesUploads makes HDFS refuse snapshots, for one reason after the other. Training must
// continue and log the reason, and a refused snapshot must not keep later ones from being uploaded.
func (a *away) refusesUploads(t *testing.T) {
	const dir = "/refused"
	a.Mkdir(t, dir, 0o777)
	j := a.job(t, dir, "data.hdfs.user=other", everySnapshot)
	refused := "" // what the reason says; "": nothing is refused
	changes := map[int]func() string{
		4: func() string { a.SetQuota(t, dir, 1, -1); return "quota" },
		5: func() string { a.SetQuota(t, dir, -1, -1); return "" },
		6: func() string { a.SetQuota(t, dir, -1, 1); return "quota" },
		7: func() string { a.SetQuota(t, dir, -1, -1); a.Chmod(t, dir+"/objects", 0o555); return "may not write" },
		9: func() string { a.Chmod(t, dir+"/objects", 0o755); return "" },
	}
	opts := quiet
	passes, failed := 0, int64(0)
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		there := r.snapshots.uploads.Finish(ctx)
		s := r.snapshots.uploads.Summary()
		if there != (refused == "") || !strings.Contains(s.Error, refused) || there && s.Error != "" {
			t.Errorf("after pass %d, refused for %q: uploaded: %v, %+v", passes+1, refused, there, s)
		}
		failed = s.Failed
		passes++
		if change := changes[passes]; change != nil {
			refused = change()
		}
		if passes == 11 {
			return errCrash
		}
		return nil
	}
	if _, err := Train(t.Context(), j, opts); !errors.Is(err, errCrash) {
		t.Fatalf("the run was to be killed, but %v", err)
	}
	if failed < 4 {
		t.Errorf("%d attempts have failed", failed)
	}
	lost(t, j)
	// What may not be read is not taken for a directory without snapshots.
	a.Chmod(t, dir, 0)
	_, err := Train(t.Context(), j, quiet)
	if err == nil || errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "may not read") || !strings.Contains(err.Error(), "--fresh") {
		t.Errorf("training began: %v", err)
	}
	a.Chmod(t, dir, 0o777)
	a.whole(t, j, train(t, j), dir)
}

// twoJobs lets two jobs upload to one directory at the same time, lose their machines, and resume.
func (a *away) twoJobs(t *testing.T) {
	const dir = "/both"
	var jobs [2]*configs.Job
	var want [2]outcomeOf
	for i := range jobs {
		set := []string{fmt.Sprintf("name=job%d", i), fmt.Sprintf("seed=%d", i+1)}
		left := withBuckets(t, set...)
		want[i] = outcome(t, left, train(t, left))
		jobs[i] = a.job(t, dir, append(set, everySnapshot)...)
	}
	both := func(run func(i int) error) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range jobs {
			wg.Go(func() {
				if err := run(i); err != nil {
					t.Errorf("job %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	}
	both(func(i int) error {
		opts := quiet
		passes := 0
		opts.afterPass = func(ctx context.Context, r *run) error {
			r.snapshots.wait()
			if !r.snapshots.uploads.Finish(ctx) {
				return errors.New("a snapshot was not uploaded")
			}
			if passes++; passes == 4+2*i {
				return errCrash
			}
			return nil
		}
		if _, err := Train(t.Context(), jobs[i], opts); !errors.Is(err, errCrash) {
			return fmt.Errorf("it was to be killed, but %w", err)
		}
		return nil
	})
	if got := a.List(t, dir+"/snapshots"); len(got) != 2*remotesnapshots.Keep {
		t.Errorf("snapshots %q", got)
	}
	for _, j := range jobs {
		lost(t, j)
	}
	var summaries [2]*report.Summary
	both(func(i int) (err error) {
		summaries[i], err = Train(t.Context(), jobs[i], quiet)
		return err
	})
	for i, s := range summaries {
		if s != nil {
			each := away{a.Cluster, want[i]}
			each.whole(t, jobs[i], s, dir)
		}
	}
}
