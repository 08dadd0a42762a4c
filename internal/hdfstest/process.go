package hdfstest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// starter starts processes from one operating system thread that never ends:
// Linux sends the parent-death signal when the starting thread ends.
var starter = sync.OnceValue(func() chan func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs { // for the life of the test process
			job()
		}
	}()
	return jobs
})

// process is a server that dies with the test process.
type process struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	lines   *bufio.Reader // standard output
	errFile string

	mu   sync.Mutex // one command at a time
	done chan struct{}
}

// javaFlags keep a JVM small and its start quick.
var javaFlags = []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"}

// startProcess runs a command with its standard error in dir/name.log.
func startProcess(dir, name string, env []string, program string, args ...string) (*process, error) {
	p := &process{name: name, errFile: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	logFile, err := os.OpenFile(p.errFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = logFile
	// The process has a process group of its own, so that Ctrl-C reaches only the tests,
	// which then end it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewReader(stdout)
	started := make(chan error)
	starter() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	go func() {
		_, _ = p.cmd.Process.Wait() // the exit status of a killed server says nothing
		close(p.done)
	}()
	return p, nil
}

// waiting bounds the wait for an answer. The wait also ends when one of the processes needed for
// the answer ends.
func waiting(others []*process) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithTimeout(context.Background(), commandTimeout)
	ctx, stop := context.WithCancelCause(bounded)
	for _, p := range others {
		go func() {
			select {
			case <-p.done:
				stop(fmt.Errorf("%s has ended:\n%s", p.name, p.log()))
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() {
		stop(nil)
		cancel()
	}
}

// readLine waits for the next line of standard output.
func (p *process) readLine(ctx context.Context) (string, error) {
	type result struct {
		line string
		err  error
	}
	ch := make(chan result, 1)
	go func() { // ends when the process answers or is killed
		line, err := p.lines.ReadString('\n')
		ch <- result{strings.TrimSpace(line), err}
	}()
	select {
	case r := <-ch:
		if r.err != nil {
			return "", fmt.Errorf("%s ended: %w\n%s", p.name, r.err, p.log())
		}
		return r.line, nil
	case <-ctx.Done():
		p.kill()
		return "", fmt.Errorf("%s: %w\n%s", p.name, context.Cause(ctx), p.log())
	}
}

// commandTimeout bounds one command and each wait for a server. The slowest, a NameNode
// restart, takes 2 s on an idle machine and much longer on a busy one. It is there to
// end a test that hangs, not to judge how fast a server is.
const commandTimeout = 10 * time.Minute

// command sends the words and returns what follows "ok".
func (p *process) command(words ...string) (string, error) {
	return p.commandWith(nil, words...)
}

// commandWith is command, but fails when one of the other processes, which the command needs, ends.
func (p *process) commandWith(others []*process, words ...string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := waiting(others)
	defer cancel()
	if _, err := io.WriteString(p.stdin, strings.Join(words, "\t")+"\n"); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", p.name, err, p.log())
	}
	line, err := p.readLine(ctx)
	if err != nil {
		return "", err
	}
	status, rest, _ := strings.Cut(line, " ")
	if status != "ok" {
		return "", fmt.Errorf("%s: %s: %s (more in %s)", p.name, strings.Join(words, " "), rest, p.errFile)
	}
	return strings.TrimSpace(rest), nil
}

func (p *process) signal(s syscall.Signal) error {
	select {
	case <-p.done:
		return errors.New(p.name + " has ended")
	default:
		return p.cmd.Process.Signal(s)
	}
}

// hang stops the process (SIGSTOP): its sockets stay open, and it answers nothing. It
// waits until every thread has stopped, since a busy machine lets them run for a while.
func (p *process) hang() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(commandTimeout); !p.stopped(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not stop", p.name)
		}
	}
	return nil
}

// stopped reports whether all threads are stopped (state T, after the name in parentheses).
func (p *process) stopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid)) // the pattern is valid
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		if _, state, ok := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " "); !ok || state[0] != 'T' {
			return false
		}
	}
	return len(threads) > 0
}

// kill kills the process, even if it is stopped (SIGSTOP), and waits for it.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails only when it has ended
	<-p.done
}

// log returns the end of what the process wrote to its standard error.
func (p *process) log() string {
	data, err := os.ReadFile(p.errFile)
	if err != nil {
		return err.Error()
	}
	return string(tail(data, 3000))
}
