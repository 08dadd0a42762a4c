// Package device has no Go code but the tests of check.py: see docs/gpu.md.
package device

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aibox/internal/testtools"
)

// endless is a program in place of aibox, whose log files are never finished.
const endless = `#!/bin/sh
case $1 in generate) : > begun; exec sleep 60;; esac
`

func needsPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		testtools.Unavailable(t, "", "python3 is not installed")
	}
}

// install copies the check to a directory, as it is carried to another machine, and returns a
// command that runs it beside that directory.
func install(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	needsPython(t)
	dir := t.TempDir()
	check := filepath.Join(dir, "check")
	script, err := os.ReadFile("../../gpu/check.sh")
	for _, e := range []error{
		err,
		os.CopyFS(filepath.Join(check, "bench", "device"), os.DirFS(".")),
		os.CopyFS(filepath.Join(check, "bench", "speed"), os.DirFS("../speed")),
		os.WriteFile(filepath.Join(check, "check.sh"), script, 0o700),
		os.WriteFile(filepath.Join(check, "aibox"), []byte(endless), 0o700),
	} {
		if e != nil {
			t.Fatal(e)
		}
	}
	c := exec.Command(filepath.Join("check", "check.sh"), append([]string{"--engine", "cpu", "--no-torch", "--dir", "out"}, arguments...)...)
	c.Dir, c.Path = dir, filepath.Join(check, "check.sh")
	return c
}

// A check that is told to end does so, wherever it is, and says what it has found until then. Paths
// are those of who calls it.
func TestStopped(t *testing.T) {
	for part, says := range map[string]string{"host": "", "models": "#### models\n"} { // the one needs a log, which is made first
		sent := syscall.SIGTERM
		if part == "models" && !signal.Ignored(syscall.SIGHUP) {
			sent = syscall.SIGHUP // its terminal is closed
		}
		t.Run(part, func(t *testing.T) {
			c := install(t, part)
			var out, errs strings.Builder
			c.Stdout, c.Stderr = &out, &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
			defer late.Stop()
			for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(filepath.Join(c.Dir, "begun")); err == nil {
					break
				}
			}
			if _, err := os.Stat(filepath.Join(c.Dir, "out")); err != nil {
				t.Error(err)
			}
			if err := c.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			status(t, c.Wait(), out.String()+errs.String())
			if !strings.HasSuffix(errs.String(), "stopped\n") {
				t.Errorf("it says %q", errs.String())
			}
			_, found, _ := strings.Cut(out.String(), "cores, ")
			if says == "" && strings.Contains(found, "\n#") || says != "" && !(strings.Contains(found, says) && strings.Contains(found, "- FAILED: stopped")) {
				t.Errorf("it prints %q", found)
			}
		})
	}
}

// Parts that need a log which cannot be made fail alone.
func TestNoLog(t *testing.T) {
	c := install(t, "host")
	out := filepath.Join(c.Dir, "out")
	if err := errors.Join(os.Mkdir(out, 0o700), os.WriteFile(filepath.Join(out, "log"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	printed, err := c.CombinedOutput()
	status(t, err, string(printed))
	for _, want := range []string{"The log could not be made: ", "| host | FAILED |"} {
		if !strings.Contains(string(printed), want) {
			t.Errorf("it does not say %q:\n%s", want, printed)
		}
	}
}

// A program that has ended before it was asked is one that has failed.
func TestSideEnded(t *testing.T) {
	needsPython(t)
	c := exec.Command("python3", "-c", "import sides; side = sides.Side(['true']); side.process.wait(); side.ask(op='step')")
	c.Dir = "../speed"
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	printed, err := c.CombinedOutput()
	status(t, err, string(printed))
	if !strings.HasPrefix(string(printed), "true ended while it worked on ") {
		t.Errorf("%s", printed)
	}
}

// slow is a program in place of aibox, whose jobs take longer than there is time.
const slow = `#!/bin/sh
case $1 in train) exec sleep 60;; esac
`

// The part faults ends in its time, which has to do for more jobs than can be told before: what there
// is no time for is skipped.
func TestFaultsInTime(t *testing.T) {
	needsPython(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "aibox")
	if err := os.WriteFile(program, []byte(slow), 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("python3", "-c", `
import argparse, contextlib, os, pathlib, sys, faults, part
faults.full_device = lambda spared: contextlib.nullcontext()
found = part.Part(4)
faults.faults(argparse.Namespace(aibox=sys.argv[1], engine="cuda", data=None, dir=pathlib.Path(sys.argv[2])), found)
found.end()
sys.stdout.flush()
os._exit(found.status())
`, program, dir)
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with the job that is still running
	var out strings.Builder
	c.Stdout, c.Stderr, c.WaitDelay = &out, &out, time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	late := time.AfterFunc(30*time.Second, end)
	defer late.Stop()
	defer end()
	_ = c.Wait() // the job has its output, too
	if code := c.ProcessState.ExitCode(); code != 3 || !strings.Contains(out.String(), "- skipped: all but the first 0 of 2 results: there is no time left") {
		t.Errorf("exit status %d\n%s", code, out.String())
	}
}

// status fails the test unless a program has ended with exit status 1.
func status(t *testing.T, err error, printed string) {
	t.Helper()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v\n%s", err, printed)
	}
}
