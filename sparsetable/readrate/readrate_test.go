package readrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	f, err := Create(t.Context(), dir, 5<<20)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path())
	if err != nil || info.Size() != 8<<20 {
		t.Fatalf("a file of %v bytes, %v: want 8 MiB", info.Size(), err)
	}
	d, err := open(t.Context(), dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil || f.Direct() != d.Direct() {
		t.Errorf("direct: %v, the device says %v; %v", f.Direct(), d.Direct(), err)
	}
	for _, l := range []Load{{ReadBytes: 4096, Depth: 32}, {ReadBytes: 700, Depth: 1}, {ReadBytes: 5 << 20, Depth: 2}} {
		l.Duration = 20 * time.Millisecond
		began := time.Now()
		perSecond, err := f.Measure(t.Context(), l)
		if err != nil || perSecond <= 0 || time.Since(began) < l.Duration {
			t.Errorf("%+v: %g reads/s in %v, %v", l, perSecond, time.Since(began), err)
		}
	}
	for _, l := range []Load{{}, {ReadBytes: 4096, Depth: 1}, {ReadBytes: 9 << 20, Depth: 1, Duration: time.Second}, {ReadBytes: 4096, Depth: 5000, Duration: time.Second}} {
		if _, err := f.Measure(t.Context(), l); err == nil {
			t.Errorf("%+v: no error", l)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, stop)
	if _, err := f.Measure(ctx, Load{ReadBytes: 4096, Depth: 8, Duration: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	if _, err := f.Measure(t.Context(), Load{ReadBytes: 4096, Depth: 1, Duration: time.Second}); err == nil {
		t.Error("a removed file was read")
	}
}

func TestCreateRefuses(t *testing.T) {
	if _, err := Create(t.Context(), t.TempDir(), 0); err == nil {
		t.Error("a file of no bytes was made")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Create(ctx, t.TempDir(), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
