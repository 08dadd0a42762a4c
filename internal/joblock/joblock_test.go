package joblock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aibox/internal/errkind"
)

// childVariable makes the test binary hold the lock of a job file until it is killed.
const childVariable = "AIBOX_TEST_JOBLOCK"

func TestMain(m *testing.M) {
	if file := os.Getenv(childVariable); file != "" {
		if _, err := take(context.Background(), file, "x"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// take takes a lock without waiting.
func take(ctx context.Context, file, name string) (io.Closer, error) {
	return Take(ctx, file, name, time.Time{}, nil)
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestOneJob: by whatever path, a job file and a name are one job; another name or another
// file is another job.
func TestOneJob(t *testing.T) {
	at := t.TempDir()
	t.Chdir(at)
	write(t, "job.yaml")
	write(t, "other.yaml")
	if err := errors.Join(os.Mkdir("dir", 0o755), os.Symlink("../job.yaml", "dir/link.yaml"), os.Symlink(at, "dir/up")); err != nil {
		t.Fatal(err)
	}
	write(t, "dir/job.yaml")
	l, err := take(t.Context(), "job.yaml", "x")
	if err != nil {
		t.Fatal(err)
	}
	same := []string{"job.yaml", "./job.yaml", at + "/job.yaml", "dir/../job.yaml", "dir/link.yaml", "dir/up/job.yaml"}
	refused := func() {
		t.Helper()
		for _, file := range same {
			_, err := take(t.Context(), file, "x")
			if !errors.Is(err, ErrLocked) || errkind.Of(t.Context(), err) != errkind.Locked || !strings.Contains(err.Error(), fmt.Sprintf("(process %d)", os.Getpid())) {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	refused()
	for _, other := range [][2]string{{"job.yaml", "y"}, {"job.yaml", ""}, {"other.yaml", "x"}, {"dir/job.yaml", "x"}} {
		l, err := take(t.Context(), other[0], other[1])
		if err != nil {
			t.Errorf("%v: %v", other, err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	// The file is replaced, as editors do it.
	write(t, "new")
	if err := os.Rename("new", "job.yaml"); err != nil {
		t.Fatal(err)
	}
	refused()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, file := range same {
		l, err := take(t.Context(), file, "x")
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := take(t.Context(), "nosuch.yaml", "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// TestWait: who waits gets the lock when it is free, is told who has it, and can be
// interrupted.
func TestWait(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file)
	l, err := take(t.Context(), file, "x")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan int, 1)
	got := make(chan error, 1)
	go func() {
		l, err := Take(t.Context(), file, "x", time.Now().Add(time.Hour), func(p int) { told <- p })
		if err == nil {
			err = l.Close()
		}
		got <- err
	}()
	if p := <-told; p != os.Getpid() {
		t.Errorf("told that process %d has it", p)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	if _, err := Take(ctx, file, "x", time.Now().Add(time.Hour), func(int) { cancel(stop) }); !errors.Is(err, stop) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := Take(t.Context(), file, "x", time.Now().Add(time.Millisecond), func(int) {}); !errors.Is(err, ErrLocked) {
		t.Errorf("after the deadline: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestKilled: a process that is killed leaves no lock.
func TestKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+file)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "locked" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := take(t.Context(), file, "x"); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(child.Process.Pid)) {
		t.Errorf("%v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	l, err := take(t.Context(), file, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
