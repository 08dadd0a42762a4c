package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/trainer/modeldir"
	"aibox/trainer/refill"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// nightStep is one thing that somebody does with a model directory. It is a command, done in
// this process, or in another one, which kills itself before one of its operations on disk.
type nightStep struct {
	Do     string // train, publish, rollback or restore
	File   string // a job file; "": nightsJob with Set and Date
	Set    []string
	Date   string
	Fresh  bool   // train
	Waits  bool   // train: after each pass, until what is saved then is saved and uploaded
	Model  string // to publish, or the model directory
	To     int    // rollback
	Remote string // publish
	From   string // restore
	Dirs   []string
}

func (s *nightStep) job() (*configs.Job, error) {
	if s.File != "" {
		text, err := os.ReadFile(s.File)
		if err != nil {
			return nil, err
		}
		return configs.Parse(s.File, text, configs.LoadOptions{Saved: true})
	}
	return configs.Parse("test.yaml", []byte(nightsJob), configs.LoadOptions{Set: s.Set, Date: s.Date})
}

// run carries the step out. A disk whose operations fail is nil, or that of the table in
// memory too.
func (s *nightStep) run(ctx context.Context, disk *faultyDisk, log *slog.Logger) (err error) {
	o := Options{Logger: log, Version: "test"}
	if disk != nil {
		o.tableFS = disk
	}
	switch s.Do {
	case "train":
		var j *configs.Job
		if j, err = s.job(); err == nil {
			o.Fresh = s.Fresh
			if s.Waits {
				o.afterPass = waitUntilSaved
			}
			_, err = Train(ctx, j, o)
		}
	case "publish":
		_, err = transfer.Publish(ctx, transfer.PublishOptions{Model: s.Model, Remote: s.Remote, Options: o.transfer()})
	case "rollback":
		if _, err = modeldir.Rollback(s.Model, s.To); err == nil {
			_, err = transfer.PublishAgain(ctx, s.Model, o.transfer())
		}
	case "restore":
		from, number := remote.SplitURI(s.From)
		_, err = transfer.Restore(ctx, transfer.RestoreOptions{From: from, Number: number, To: s.Model, Dirs: s.Dirs, Options: o.transfer()})
	default:
		err = fmt.Errorf("nothing to do is called %q", s.Do)
	}
	return err
}

// waitUntilSaved is an afterPass that ends when the snapshot, or the rows that are saved by
// priority, are where they belong, or when uploading has failed.
func waitUntilSaved(ctx context.Context, r *run) error {
	r.snapshots.wait()
	if u := r.snapshots.uploads; u != nil {
		u.Finish(ctx)
		if u.Priority != nil {
			u.Priority.Collect(r.state.Engine.Step)
			u.Priority.Finish(ctx)
		}
	}
	return nil
}

// nightVariable tells the tests' program to carry out a step, and at which operation to die.
const nightVariable = "AIBOX_TEST_NIGHT"

type dyingStep struct {
	Step   nightStep
	At     int    // number of the operation
	Within string // of those on files in this directory alone; "": of all
}

// nightChild does what nightVariable says, and reports whether it was set.
func nightChild() (code int, is bool) {
	text, is := os.LookupEnv(nightVariable)
	if !is {
		return 0, false
	}
	var d dyingStep
	err := json.Unmarshal([]byte(text), &d)
	if err == nil {
		disk := &faultyDisk{on: true, fails: func(operation int) error {
			if operation == d.At {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
				select {}
			}
			return nil
		}}
		diskfault.Inject(func(op, path string) error {
			if !strings.HasPrefix(path, d.Within) {
				return nil
			}
			return disk.ask(op, path)
		})
		err = d.Step.run(context.Background(), disk, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.As(err, new(*refill.LostSamplesError)) {
			return lostTooMuch, true
		}
		return 1, true
	}
	return 0, true
}

// lostTooMuch is the exit code of a step that has ended with a refill.LostSamplesError.
const lostTooMuch = 7

// dies carries the step out in a process that dies at an operation, and reports whether it
// came to its end before. To have lost too many samples is no end: nothing has changed then.
func (s *nightStep) dies(t *testing.T, at int) (done bool, output string) {
	t.Helper()
	return s.diesWithin(t, "", at)
}

// diesWithin is dies where only the operations on files in a directory count; "": all do.
func (s *nightStep) diesWithin(t *testing.T, dir string, at int) (done bool, output string) {
	t.Helper()
	text, err := json.Marshal(dyingStep{*s, at, dir})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nightVariable+"="+string(text))
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return true, string(out)
	case cmd.ProcessState != nil && (cmd.ProcessState.ExitCode() == -1 || cmd.ProcessState.ExitCode() == lostTooMuch):
		return false, string(out)
	}
	t.Fatalf("%+v: %v\n%s", s, err, out)
	return false, ""
}
