package blockio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
)

// eachDevice runs a test with every implementation that works on this machine.
func eachDevice(t *testing.T, test func(t *testing.T, d blockio.Device, pool *blockio.Pool)) {
	open := map[string]func(t *testing.T) blockio.Device{
		"memory": func(*testing.T) blockio.Device { return blocktest.New(blocktest.Options{Seed: 1}) },
	}
	for _, engine := range []string{"io_uring", "pread"} {
		for _, direct := range []blockio.Mode{blockio.Auto, blockio.Off} {
			open[fmt.Sprintf("%s/direct=%d", engine, direct)] = func(t *testing.T) blockio.Device {
				d, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{Engine: engine, Direct: direct, QueueDepth: 8})
				if engine == "io_uring" && err != nil {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
		}
	}
	for name, f := range open {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			d := f(t)
			pool := blockio.NewPool(d.Unit(), 0)
			test(t, d, pool)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if err := d.Close(); err != nil {
				t.Error("second Close:", err)
			}
			if n := pool.InUse(); n != 0 {
				t.Errorf("%d bytes of buffers were not returned", n)
			}
			pool.Close()
			if n := pool.Bytes(); n != 0 {
				t.Errorf("%d bytes are still mapped after Close", n)
			}
			waitGoroutines(t, before)
		})
	}
}

// waitGoroutines fails the test unless the number of goroutines falls back to n.
func waitGoroutines(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), n, buf[:runtime.Stack(buf, true)])
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, pool *blockio.Pool, n int) []byte {
	t.Helper()
	b, err := pool.Get(n)
	must(t, err)
	return b
}

// fill makes a file of n units, each filled with its number.
func fill(t *testing.T, d blockio.Device, pool *blockio.Pool, name string, n int) blockio.File {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	buf := get(t, pool, n*d.Unit())
	defer pool.Put(buf)
	for i := range buf {
		buf[i] = byte(i/d.Unit()) + byte(i)
	}
	if k, err := f.WriteAt(buf, 0); k != len(buf) || err != nil {
		t.Fatal(k, err)
	}
	must(t, f.Sync())
	must(t, d.SyncDir())
	return f
}

func wantUnits(t *testing.T, unit int, offset int64, got []byte) {
	t.Helper()
	for i, b := range got {
		at := int(offset) + i
		if b != byte(at/unit)+byte(at) {
			t.Fatalf("byte %d of the read at %d is wrong", i, offset)
		}
	}
}

func TestReadsInFlight(t *testing.T) {
	eachDevice(t, func(t *testing.T, d blockio.Device, pool *blockio.Pool) {
		const units, batch, rounds = 200, 100, 20
		u := d.Unit()
		f := fill(t, d, pool, "data", units)
		var c blockio.Completions
		reads := make([]*blockio.Read, batch)
		seen := make([]bool, batch)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range reads {
			reads[i] = &blockio.Read{File: f, Cookie: uint64(i)}
		}
		for range rounds {
			for _, r := range reads {
				n := 1 + rng.IntN(4)
				r.Offset = int64(rng.IntN(units-n+1) * u)
				r.Buf = get(t, pool, n*u)
				clear(r.Buf)
			}
			clear(seen)
			d.Submit(&c, reads)
			var back []*blockio.Read
			for c.Pending() > 0 {
				want := 1 + rng.IntN(2*batch)
				from := len(back)
				pending := c.Pending()
				if back = c.Wait(back, want); len(back)-from < min(want, pending) {
					t.Fatalf("Wait returned %d reads, %d wanted of %d", len(back)-from, want, pending)
				}
			}
			if len(back) != batch {
				t.Fatalf("%d reads ended, %d submitted", len(back), batch)
			}
			for _, r := range back {
				must(t, r.Err)
				if seen[r.Cookie] {
					t.Fatalf("read %d ended twice", r.Cookie)
				}
				seen[r.Cookie] = true
				wantUnits(t, u, r.Offset, r.Buf)
				pool.Put(r.Buf)
			}
		}
		if got := c.Wait(nil, 1); got != nil {
			t.Errorf("Wait with nothing pending returned %d reads", len(got))
		}
		// It counts what it gives the kernel; one in memory gives it nothing.
		if n := d.Stats().MaxInFlight; n > uint64(d.QueueDepth()) || n == 0 && d.Engine() != "memory" {
			t.Errorf("%d reads at once, the queue is %d deep", n, d.QueueDepth())
		}
		must(t, f.Close())
	})
}

func TestReadsThatFail(t *testing.T) {
	eachDevice(t, func(t *testing.T, d blockio.Device, pool *blockio.Pool) {
		u := d.Unit()
		f := fill(t, d, pool, "data", 3)
		closed := fill(t, d, pool, "closed", 1)
		must(t, closed.Close())
		other := blocktest.New(blocktest.Options{})
		foreign, err := other.Create("x")
		must(t, err)
		buf := func(n int) []byte { return get(t, pool, n)[:n] }
		submit := []struct {
			r    *blockio.Read
			want error
		}{
			{&blockio.Read{File: f, Buf: buf(u)}, nil},
			{&blockio.Read{File: f, Offset: int64(2 * u), Buf: buf(2 * u)}, io.ErrUnexpectedEOF},
			{&blockio.Read{File: f, Offset: int64(3 * u), Buf: buf(u)}, io.ErrUnexpectedEOF},
			{&blockio.Read{File: f, Offset: 8, Buf: buf(u)}, blockio.ErrUnaligned},
			{&blockio.Read{File: f, Buf: buf(u)[:u-8]}, blockio.ErrUnaligned},
			{&blockio.Read{File: closed, Buf: buf(u)}, blockio.ErrClosed},
			{&blockio.Read{File: f, Offset: int64(u), Buf: buf(u)}, nil},
		}
		var c blockio.Completions
		reads := make([]*blockio.Read, 0, len(submit))
		for _, s := range submit {
			reads = append(reads, s.r)
		}
		stranger := &blockio.Read{File: foreign, Buf: buf(u)}
		reads = append(reads, stranger)
		d.Submit(&c, reads)
		if got := c.Wait(nil, len(reads)); len(got) != len(reads) {
			t.Fatalf("%d of %d reads ended", len(got), len(reads))
		}
		for i, s := range submit {
			if !errors.Is(s.r.Err, s.want) {
				t.Errorf("read %d: error %v, want %v", i, s.r.Err, s.want)
			}
			if s.want == nil {
				wantUnits(t, u, s.r.Offset, s.r.Buf)
			}
		}
		if stranger.Err == nil {
			t.Error("a read of another device's file succeeded")
		}
		for _, r := range reads {
			pool.Put(r.Buf)
		}
		must(t, f.Close())
		if err := f.Close(); !errors.Is(err, blockio.ErrClosed) {
			t.Errorf("second Close of a file: %v", err)
		}
		if _, err := f.Size(); !errors.Is(err, blockio.ErrClosed) {
			t.Errorf("Size of a closed file: %v", err)
		}
	})
}

// TestCloseWhileReading closes the file and the device while reads are queued. All reads must end,
// with their bytes or with ErrClosed.
func TestCloseWhileReading(t *testing.T) {
	eachDevice(t, func(t *testing.T, d blockio.Device, pool *blockio.Pool) {
		u := d.Unit()
		f := fill(t, d, pool, "data", 100)
		var c blockio.Completions
		var reads []*blockio.Read
		for i := range 100 {
			reads = append(reads, &blockio.Read{File: f, Offset: int64(i * u), Buf: get(t, pool, u)})
		}
		d.Submit(&c, reads)
		if d.Engine() != "memory" { // there a closed file refuses queued reads
			must(t, f.Close())
		}
		must(t, d.Close())
		late := &blockio.Read{File: f, Buf: get(t, pool, u)}
		d.Submit(&c, []*blockio.Read{late})
		for _, r := range c.Wait(nil, len(reads)+1) {
			if r == late {
				if !errors.Is(r.Err, blockio.ErrClosed) {
					t.Errorf("a read after Close: %v", r.Err)
				}
			} else {
				must(t, r.Err)
				wantUnits(t, u, r.Offset, r.Buf)
			}
			pool.Put(r.Buf)
		}
		if c.Pending() != 0 {
			t.Errorf("%d reads are still pending", c.Pending())
		}
	})
}

func TestNames(t *testing.T) {
	eachDevice(t, func(t *testing.T, d blockio.Device, pool *blockio.Pool) {
		a := fill(t, d, pool, "a", 1)
		b := fill(t, d, pool, "b", 2)
		if _, err := d.Create("a"); !errors.Is(err, os.ErrExist) {
			t.Errorf("Create of an existing file: %v", err)
		}
		if _, err := d.OpenFile("none"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("OpenFile of a missing file: %v", err)
		}
		must(t, d.Remove("a"))
		names, err := d.List()
		must(t, err)
		if !slices.Equal(names, []string{"b"}) {
			t.Errorf("files %v, want b", names)
		}
		again, err := d.OpenFile("b")
		must(t, err)
		if n, err := again.Size(); n != int64(2*d.Unit()) || err != nil {
			t.Errorf("the file has %d bytes, %v", n, err)
		}
		must(t, d.Remove("b"))
		if err := d.Remove("b"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Remove of a missing file: %v", err)
		}
		buf := get(t, pool, 2*d.Unit())
		if n, err := b.ReadAt(buf, 0); n != len(buf) || err != nil {
			t.Errorf("read of a removed, open file: %d, %v", n, err)
		}
		if n, err := b.ReadAt(buf, int64(d.Unit())); n != d.Unit() || err != io.EOF {
			t.Errorf("read over the end: %d, %v; want %d, EOF", n, err, d.Unit())
		}
		pool.Put(buf)
		if free, err := d.Free(); free <= 0 || err != nil {
			t.Errorf("free space %d, %v", free, err)
		}
		for _, f := range []blockio.File{a, b, again} {
			must(t, f.Close())
		}
		if s := d.Stats(); s.WriteBytes != uint64(3*d.Unit()) || s.Writes != 2 || s.Syncs != 2 || s.Reads != 2 {
			t.Errorf("counted %+v", s)
		}
	})
}

func TestUnalignedWrite(t *testing.T) {
	eachDevice(t, func(t *testing.T, d blockio.Device, pool *blockio.Pool) {
		f := fill(t, d, pool, "a", 1)
		buf := get(t, pool, 2*d.Unit())
		if _, err := f.WriteAt(buf[8:8+d.Unit()], 0); !errors.Is(err, blockio.ErrUnaligned) {
			t.Errorf("write from an unaligned address: %v", err)
		}
		if _, err := f.WriteAt(buf[:d.Unit()], 100); !errors.Is(err, blockio.ErrUnaligned) {
			t.Errorf("write to an unaligned offset: %v", err)
		}
		pool.Put(buf)
		must(t, f.Close())
	})
}

// TestOneOwnerOverDevices waits for reads of several devices with one Completions value.
func TestOneOwnerOverDevices(t *testing.T) {
	var c blockio.Completions
	pool := blockio.NewPool(512, 0)
	want := map[uint64]string{}
	for i := range 3 {
		d := blocktest.New(blocktest.Options{Seed: uint64(i)})
		defer func() { must(t, d.Close()) }()
		f := fill(t, d, pool, "data", 10)
		for j := range 10 {
			cookie := uint64(100*i + j)
			want[cookie] = ""
			d.Submit(&c, []*blockio.Read{{File: f, Offset: int64(j * 512), Buf: get(t, pool, 512), Cookie: cookie}})
		}
	}
	for _, r := range c.Wait(nil, 30) {
		must(t, r.Err)
		wantUnits(t, 512, r.Offset, r.Buf)
		delete(want, r.Cookie)
	}
	if len(want) != 0 {
		t.Errorf("%d reads did not come back", len(want))
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []blockio.Options{{QueueDepth: -1}, {QueueDepth: 5000}, {UnitBytes: 1000}, {UnitBytes: 8192}, {Engine: "aio"}} {
		if d, err := blockio.Open(t.Context(), t.TempDir(), o); err == nil {
			_ = d.Close()
			t.Errorf("Open took %+v", o)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := blockio.Open(ctx, t.TempDir(), blockio.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a cancelled context: %v", err)
	}
	d, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{UnitBytes: 4096, Engine: "pread"})
	must(t, err)
	if d.Unit() != 4096 {
		t.Errorf("unit %d, asked for 4096", d.Unit())
	}
	must(t, d.Close())
}

// TestProbe checks that the probe logs a warning exactly when it falls back, and that it deletes
// its file.
func TestProbe(t *testing.T) {
	var log bytes.Buffer
	d, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	defer func() { must(t, d.Close()) }()
	if d.Direct() == strings.Contains(log.String(), "direct I/O does not work") {
		t.Errorf("direct %v, but the log says %q", d.Direct(), log.String())
	}
	left, err := os.ReadDir(d.Dir())
	must(t, err)
	if len(left) != 0 {
		t.Errorf("the probe left %s behind", left[0].Name())
	}
}
