package blockio_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/sparsetable/internal/blockio"
)

// writeAndRead writes a file and reads it through the engine.
func writeAndRead(t *testing.T, d blockio.Device) {
	t.Helper()
	pool := blockio.NewPool(d.Unit(), 0)
	defer pool.Close()
	f := fill(t, d, pool, "data", 40)
	var c blockio.Completions
	for i := range 40 {
		offset := int64(i * d.Unit())
		d.Submit(&c, []*blockio.Read{{File: f, Buf: get(t, pool, d.Unit()), Offset: offset}})
	}
	for n := 0; n < 40; {
		for _, r := range c.Wait(nil, 1) {
			must(t, r.Err)
			wantUnits(t, d.Unit(), r.Offset, r.Buf)
			pool.Put(r.Buf)
			n++
		}
	}
	must(t, f.Close())
}

// TestWithoutURing checks that threads do the reads if the kernel refuses io_uring, with one
// warning. If the options ask for io_uring, that is an error.
func TestWithoutURing(t *testing.T) {
	defer blockio.RefuseRings(unix.EPERM)()
	var log bytes.Buffer
	o := blockio.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), QueueDepth: 8}
	d, err := blockio.Open(t.Context(), t.TempDir(), o)
	must(t, err)
	if d.Engine() != "pread" {
		t.Errorf("engine %s, want pread", d.Engine())
	}
	if n := strings.Count(log.String(), "level=WARN msg=\"io_uring is not available here"); n != 1 || !strings.Contains(log.String(), unix.EPERM.Error()) {
		t.Errorf("%d warnings, want one with the cause: %s", n, log.String())
	}
	writeAndRead(t, d)
	must(t, d.Close())

	o.Engine = "io_uring"
	if d, err := blockio.Open(t.Context(), t.TempDir(), o); !errors.Is(err, unix.EPERM) {
		t.Errorf("io_uring was asked for: %v, %v", d, err)
	}
	log.Reset()
	o.Engine = "pread"
	d, err = blockio.Open(t.Context(), t.TempDir(), o)
	must(t, err)
	if strings.Contains(log.String(), "io_uring") {
		t.Errorf("threads were asked for, and there is a warning: %s", log.String())
	}
	must(t, d.Close())
}

// TestRingRefused checks that the warning suggests a remedy that suits the reason for which the
// kernel refuses io_uring.
func TestRingRefused(t *testing.T) {
	for reason, want := range map[error]string{unix.EPERM: "seccomp", unix.ENOSYS: "seccomp", unix.ENOMEM: "LimitMEMLOCK", unix.EMFILE: "LimitNOFILE"} {
		restore := blockio.RefuseRings(fmt.Errorf("io_uring_setup: %w", reason))
		var log bytes.Buffer
		d, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), QueueDepth: 8})
		restore()
		must(t, err)
		must(t, d.Close())
		for _, advice := range []string{"seccomp", "LimitMEMLOCK", "LimitNOFILE"} {
			if strings.Contains(log.String(), advice) != (advice == want) {
				t.Errorf("%v: want advice about %s: %s", reason, want, log.String())
			}
		}
	}
}

// TestFewThreads checks that if the process may have few threads, the reading threads leave some to
// the rest of the program, however many devices there are, and that a closed device gives its
// threads back.
func TestFewThreads(t *testing.T) {
	defer blockio.RefuseRings(unix.EPERM)()
	open := func() (d blockio.Device, threads int) {
		t.Helper()
		var log bytes.Buffer
		d, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		_, after, _ := strings.Cut(log.String(), " threads=")
		threads, err = strconv.Atoi(strings.TrimSpace(after))
		must(t, err)
		return d, threads
	}
	for free, want := range map[int]int{-1: 128, 0: 1, 1_000_000: 128} {
		restore := blockio.LimitThreads(free)
		d, threads := open()
		restore()
		if threads != want {
			t.Errorf("%d threads where %d are free, want %d", threads, free, want)
		}
		must(t, d.Close())
	}
	const free = 200
	defer blockio.LimitThreads(free)()
	for range 2 {
		var devices []blockio.Device
		sum, first := 0, 0
		for range 6 {
			d, threads := open()
			devices, sum, first = append(devices, d), sum+threads, max(first, threads)
			writeAndRead(t, d)
		}
		if rest := 16 + 2*runtime.GOMAXPROCS(0); sum > free-rest || first < (free-rest)/4-1 {
			t.Errorf("the first device takes %d threads and six take %d of %d", first, sum, free)
		}
		for _, d := range devices {
			must(t, d.Close())
		}
	}
}

// TestWithoutDirect checks that files are buffered if the file system refuses O_DIRECT, also for
// reading only, with one warning. If the options ask for direct I/O, that is an error.
func TestWithoutDirect(t *testing.T) {
	defer blockio.RefuseDirect()()
	for _, engine := range []string{"", "pread"} {
		var log bytes.Buffer
		o := blockio.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), QueueDepth: 8, Engine: engine}
		warned := func(what string) {
			t.Helper()
			if n := strings.Count(log.String(), "level=WARN msg=\"direct I/O does not work here"); n != 1 || !strings.Contains(log.String(), unix.EINVAL.Error()) {
				t.Errorf("%s: %d warnings, want one with the cause: %s", what, n, log.String())
			}
			log.Reset()
		}
		dir := t.TempDir()
		d, err := blockio.Open(t.Context(), dir, o)
		must(t, err)
		if d.Direct() {
			t.Error("direct, which the file system refuses")
		}
		warned("opened")
		writeAndRead(t, d)
		must(t, d.Close())

		o.ReadOnly = true
		d, err = blockio.Open(t.Context(), dir, o)
		must(t, err)
		if d.Direct() {
			t.Error("direct for reading, which the file system refuses")
		}
		warned("opened for reading")
		must(t, d.Close())

		for _, readOnly := range []bool{false, true} {
			o.Direct, o.ReadOnly = blockio.On, readOnly
			if d, err := blockio.Open(t.Context(), dir, o); !errors.Is(err, unix.EINVAL) {
				t.Errorf("direct I/O was asked for: %v, %v", d, err)
			}
		}
		o.Direct, o.ReadOnly = blockio.Off, false
		d, err = blockio.Open(t.Context(), dir, o)
		must(t, err)
		if d.Direct() || strings.Contains(log.String(), "direct I/O") {
			t.Errorf("buffered files were asked for: direct %v, %s", d.Direct(), log.String())
		}
		must(t, d.Close())
	}
}

// TestFullDisk checks that direct I/O works as before on a full disk, where the files of a table
// must still be read and deleted.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	o := blockio.Options{Direct: blockio.On, QueueDepth: 8}
	d, err := blockio.Open(t.Context(), dir, o)
	if err != nil {
		t.Skipf("direct I/O does not work here: %v", err)
	}
	writeAndRead(t, d)
	must(t, d.Close())
	defer blockio.FillDisk()()
	if _, err := blockio.Open(t.Context(), t.TempDir(), o); !blockio.IsFull(err) {
		t.Errorf("direct I/O was asked for in a directory without a file: %v", err)
	}
	full, err := blockio.Open(t.Context(), dir, o)
	must(t, err)
	if !full.Direct() || full.Unit() != d.Unit() {
		t.Errorf("direct %v with a unit of %d, want %d as before", full.Direct(), full.Unit(), d.Unit())
	}
	must(t, full.Close())
}

// TestDirectoriesNotSynced checks that a file system that cannot sync directories, such as /proc,
// causes no error.
func TestDirectoriesNotSynced(t *testing.T) {
	d, err := blockio.Open(t.Context(), "/proc/self", blockio.Options{Direct: blockio.Off, QueueDepth: 8, ReadOnly: true})
	must(t, err)
	must(t, errors.Join(d.SyncDir(), d.Close()))
}
