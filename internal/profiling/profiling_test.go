package profiling

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aibox/internal/errkind"
)

// content reads a file; a profile is decompressed.
func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(path, ".pprof") {
		return string(data)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(text)
}

//go:noinline
func allocateMuch() []byte { return make([]byte, 64<<20) }

var sink int

// burn computes for so long, not counting the time in which a busy machine runs other
// programs.
//
//go:noinline
func burn(t *testing.T, d time.Duration) (n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for end := used() + d; used() < end; {
		for range 10_000 {
			n++
		}
	}
	return n
}

func TestSession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s, err := Start(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Options{Dir: filepath.Join(dir, "other")}); err == nil {
		t.Error("two sessions at the same time")
	}
	if files, _ := os.ReadDir(filepath.Join(dir, "other")); len(files) > 0 {
		t.Errorf("a session that was not started leaves %v", files)
	}
	big := allocateMuch()
	pprof.Do(context.Background(), pprof.Labels("stage", "burning"), func(context.Context) { sink += burn(t, 300*time.Millisecond) })
	s.heap.look() // the collector has not run yet, so that the profile of the heap may lack it; that of allocations does not
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	big[0]++
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range files {
		names = append(names, f.Name())
	}
	want := append([]string{}, Files...)
	want = append(want, "other")
	for _, name := range names {
		if !strings.Contains(strings.Join(want, " "), name) {
			t.Errorf("the directory holds %s", name)
		}
	}
	if len(names) != len(want) {
		t.Errorf("the directory holds %v, want %v", names, want)
	}
	for name, part := range map[string]string{cpuName: "burning", heapName: "inuse_space", allocsName: "allocateMuch", mutexName: "contentions", blockName: "contentions", traceName: "go 1."} {
		if text := content(t, filepath.Join(dir, name)); !strings.Contains(text, part) {
			t.Errorf("%s (%d bytes) does not hold %q", name, len(text), part)
		}
	}
	// The profiles of this run are not overwritten by the next one.
	before := content(t, filepath.Join(dir, cpuName))
	_, err = Start(Options{Dir: dir})
	if err == nil || errkind.Of(context.Background(), err) != errkind.Usage || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second session in the same directory: %v", err)
	}
	if content(t, filepath.Join(dir, cpuName)) != before {
		t.Error("the profiles of the first session are touched")
	}
}

// TestFreeDir: a directory is taken as long as no session has left a file in it, and numbers go on.
func TestFreeDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, c := range []struct{ file, want string }{
		{"", ""}, {"notes.txt", ""}, {"trace.out", "2"}, {"2/other", "2"}, {"2/kernels.tsv", "3"}, {"3/cpu.pprof", "4"}, {"5/cpu.pprof", "4"},
	} {
		if c.file != "" {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, c.file)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, c.file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := FreeDir(dir); err != nil || got != filepath.Join(dir, c.want) {
			t.Errorf("after %q: %s, %v, want %s", c.file, got, err, c.want)
		}
	}
	if got, err := FreeDir(filepath.Join(dir, "notes.txt")); err == nil {
		t.Errorf("a file: %s", got)
	}
}

// TestKernels: what the caller has measured on devices is beside the other profiles, and is not lost either.
func TestKernels(t *testing.T) {
	dir := t.TempDir()
	text := "before"
	o := Options{Dir: dir, Logger: slog.New(slog.DiscardHandler), Kernels: func(w io.Writer) error { _, err := io.WriteString(w, text); return err }}
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	text = "at the end"
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(dir, KernelsFile)); got != "at the end" {
		t.Errorf("the file has %q", got)
	}
	for _, name := range Files {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Start(o); err == nil || !strings.Contains(err.Error(), KernelsFile) {
		t.Errorf("a second session in the same directory: %v", err)
	}
	o.Dir, o.Kernels = t.TempDir(), func(io.Writer) error { return errors.New("full") }
	if s, err = Start(o); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

// TestTraceEnds: the trace of a long job does not fill the disk.
func TestTraceEnds(t *testing.T) {
	dir := t.TempDir()
	const limit = 64 << 10
	s, err := Start(Options{Dir: dir, TraceBytes: limit, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ping, pong := make(chan int), make(chan int)
	go func() {
		for v := range ping {
			pong <- v
		}
	}()
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && len(s.trace.full) == 0; {
		for range 1000 {
			ping <- 1
			<-pong
		}
		if info, err := os.Stat(filepath.Join(dir, traceName)); err != nil || info.Size() >= limit {
			break
		}
	}
	close(ping)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	// What the runtime holds in its buffers comes on top.
	if size := len(content(t, filepath.Join(dir, traceName))); size < limit || size > limit+8<<20 {
		t.Errorf("a trace of %d bytes, limit %d", size, limit)
	}
}

// TestNoDirectory: a directory that cannot be made or written is an error of input or
// output, found before the work begins.
func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(Options{Dir: filepath.Join(file, "dir")})
	var path *os.PathError
	if !errors.As(err, &path) || errkind.Of(context.Background(), err) != errkind.IO {
		t.Errorf("%v", err)
	}
}
