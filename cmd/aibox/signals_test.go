package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aibox/trainer/report"
)

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// child is aibox as a process of its own.
func child(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(self(t), args...)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// tooLong is the time after which a job counts as hung. On an idle machine, it ends within a
// second.
const tooLong = 10 * time.Minute

// endless are the overrides of a job that runs until it is stopped.
var endless = []string{"--set", "training.epochs=1000000", "--set", "data.eval=[]", "--log-format", "json"}

// enoughTime is the override with which there is enough time for a last snapshot on any machine.
var enoughTime = []string{"--set", "snapshots.on_stop_seconds=3600"}

// startWatched starts the program and returns its standard error. A job that counts as hung is
// killed, so that no test waits for ever.
func startWatched(t *testing.T, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := child(t, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(tooLong, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { watchdog.Stop() })
	return cmd, stderr
}

// startEndless starts an endless job and returns once it has trained an epoch, with what it writes
// to standard error from then on.
func startEndless(t *testing.T, args ...string) (*exec.Cmd, func() string) {
	t.Helper()
	cmd, stderr := startWatched(t, append(append([]string{"train", "job.yaml"}, endless...), args...)...)
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	for err == nil && strings.Contains(line, `"level":"INFO"`) && !strings.Contains(line, "epoch trained") {
		line, err = lines.ReadString('\n')
	}
	if err != nil || !strings.Contains(line, "epoch trained") {
		t.Fatalf("instead of training: %q, %v", line, err)
	}
	return cmd, func() string {
		rest, _ := io.ReadAll(lines)
		return line + string(rest)
	}
}

func wantExit(t *testing.T, cmd *exec.Cmd, code int) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(tooLong):
		t.Fatal("it does not end")
	}
	if have := cmd.ProcessState.ExitCode(); have != code {
		t.Errorf("exit %d (%v), want %d", have, cmd.ProcessState, code)
	}
}

// TestSignalEndsCleanly checks that after one SIGINT, SIGTERM or SIGHUP the job ends by itself with
// a last snapshot, from which the next job resumes, and that the model of an earlier run is
// unchanged.
func TestSignalEndsCleanly(t *testing.T) {
	// The tests themselves may have been started by nohup: a signal that is not ignored here is
	// not ignored by children.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, unix.SIGHUP)
	t.Cleanup(func() { signal.Stop(heard) })
	inSmallJob(t)
	ok(t, "train", "job.yaml")
	digest := ok(t, "inspect", "--digest", "model")
	for i, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		cmd, rest := startEndless(t, enoughTime...)
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		stderr := rest()
		wantExit(t, cmd, exitInterrupted)
		wantJSONLines(t, stderr)
		if !strings.Contains(stderr, "a second signal ends the program at once") || !strings.Contains(stderr, `"exit_code":130`) {
			t.Errorf("%v: standard error ends with %s", s, stderr[max(0, len(stderr)-500):])
		}
		if again := ok(t, "inspect", "--digest", "model"); again != digest {
			t.Errorf("%v: the earlier model has changed", s)
		}
		if !strings.Contains(stderr, "the same command resumes from the snapshot after step") {
			t.Errorf("%v: it is not said how to go on: %s", s, stderr[max(0, len(stderr)-500):])
		}
		wantOnly(t, "model", "LOCK", "MODEL.json", "gen-000001", "gen-000002", "metrics.jsonl", "quarantine.jsonl", "summary-failed.json", "summary.json", "tensorboard")
		var failed report.Summary
		if err := json.Unmarshal([]byte(read(t, "model/summary-failed.json")), &failed); err != nil || failed.Failure.Resume == nil || len(failed.Resumed) != i {
			t.Errorf("%v: %+v, %v", s, failed.Failure, err)
		}
	}
}

// TestHangupThatIsIgnored checks that a job that nohup has started continues after a SIGHUP.
func TestHangupThatIsIgnored(t *testing.T) {
	inSmallJob(t)
	signal.Ignore(unix.SIGHUP) // children inherit it
	t.Cleanup(func() { signal.Reset(unix.SIGHUP) })
	cmd, rest := startEndless(t)
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGHUP, unix.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	stderr := rest()
	wantExit(t, cmd, exitInterrupted)
	if !strings.Contains(stderr, `"exit_code":130`) { // a second signal would end it before it says so
		t.Errorf("standard error ends with %s", stderr[max(0, len(stderr)-500):])
	}
}

// TestSecondSignalEndsAtOnce lets the job hang in a write to its log, which nobody reads, so that
// it cannot end cleanly. A second signal must end it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	inSmallJob(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Skip(err)
	}
	// Another open file, because the one of the job must go on to block.
	fill, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", write.Fd()), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Close(fill) }()
	cmd := child(t, append([]string{"train", "job.yaml"}, endless...)...)
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	// Once it has begun to log, the test fills what is left of the pipe, so that the next
	// line cannot be written.
	for deadline := time.Now().Add(tooLong); ; time.Sleep(5 * time.Millisecond) {
		n, err := unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Skip(err)
		}
		if n > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not log anything")
		}
	}
	for err = nil; err == nil; {
		_, err = unix.Write(fill, []byte{' '})
	}
	if err != unix.EAGAIN {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	var info unix.Siginfo // stays zero while it runs
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if info.Signo != 0 {
		t.Fatal("it has ended after one signal")
	}
	// Two signals are one to a process that has not run in between.
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for cmd.Process.Signal(unix.SIGINT) == nil {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ended:
				return
			}
		}
	}()
	wantExit(t, cmd, exitInterrupted)
}

// TestKilledRunLeavesNoTrace checks that the next run deletes what a run that was killed with
// SIGKILL has left, and that its model is that of a new directory.
func TestKilledRunLeavesNoTrace(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml", "--set", "output.model_dir=fresh")
	cmd, _ := startEndless(t)
	if o := aibox("train", "job.yaml", "--set", "output.model_dir=other"); o.code != exitLocked || !strings.Contains(o.stderr, fmt.Sprintf("training this job (process %d)", cmd.Process.Pid)) {
		t.Errorf("the same job: exit %d: %s", o.code, o.stderr)
	}
	if o := aibox("train", "job.yaml", "--set", "name=other"); o.code != exitLocked || !strings.Contains(o.stderr, "model directory is locked") {
		t.Errorf("another job in the same directory: exit %d: %s", o.code, o.stderr)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if o := aibox("inspect", "model"); o.code != exitIO {
		t.Errorf("a killed first run leaves a model: exit %d: %s", o.code, o.stderr)
	}
	ok(t, "train", "job.yaml")
	if a, b := ok(t, "inspect", "--digest", "model"), ok(t, "inspect", "--digest", "fresh"); a != b {
		t.Errorf("digests %s and %s", a, b)
	}
	wantOnly(t, "model", "LOCK", "MODEL.json", "gen-000002", "metrics.jsonl", "quarantine.jsonl", "summary.json", "tensorboard")
}

// TestClosedOutput checks that `aibox config show | head -1` ends without an error message.
func TestClosedOutput(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	var stderr bytes.Buffer
	cmd := child(t, "config", "init")
	cmd.Stdout, cmd.Stderr = write, &stderr
	err = cmd.Run()
	write.Close()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGPIPE || stderr.Len() > 0 {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

// TestTrainsUnread checks that a night whose standard output and error are read by a program that
// has ended still makes its model.
func TestTrainsUnread(t *testing.T) {
	inSmallJob(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	cmd := child(t, "train", "job.yaml")
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Run()
	write.Close()
	if err != nil {
		t.Error(err)
	}
	ok(t, "inspect", "--digest", "model")
}

// TestNoHome checks that no environment variable is needed.
func TestNoHome(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "job.yaml", smallJob)
	cmd := child(t, "generate", "job.yaml", "--rows", "10", "--eval-rows", "10")
	cmd.Env = []string{childVariable + "=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
