package blocktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"

	"aibox/sparsetable/internal/blockio"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// units returns aligned memory of n units filled with b.
func units(t *testing.T, n int, b byte) []byte {
	t.Helper()
	buf, err := blockio.NewPool(512, 0).Get(n * 512)
	must(t, err)
	for i := range buf {
		buf[i] = b
	}
	return buf
}

// TestCrashKeepsWhatWasSynced checks that a crash keeps what was synced, and that unsynced units
// are sometimes kept, sometimes lost and sometimes torn, over many seeds.
func TestCrashKeepsWhatWasSynced(t *testing.T) {
	outcomes := map[string]bool{}
	for seed := range uint64(200) {
		d := New(Options{Seed: seed})
		f, err := d.Create("synced")
		must(t, err)
		_, err = f.WriteAt(units(t, 2, 1), 0)
		must(t, err)
		must(t, f.Sync())
		must(t, d.SyncDir())
		_, err = f.WriteAt(units(t, 3, 2), 512) // the first unit stays synced
		must(t, err)
		g, err := d.Create("fresh")
		must(t, err)
		_, err = g.WriteAt(units(t, 1, 3), 0)
		must(t, err)
		must(t, g.Sync())

		after := d.Crash(seed)
		if _, err := f.WriteAt(units(t, 1, 9), 0); err == nil {
			t.Fatal("a write after the crash")
		}
		data := after.Bytes("synced")
		if len(data) < 1024 || !bytes.Equal(data[:512], units(t, 1, 1)) {
			t.Fatalf("seed %d: synced bytes are lost", seed)
		}
		what := ""
		for at := 512; at < len(data); at += 512 {
			unit := data[at : at+512]
			if slices.Max(unit) != slices.Min(unit) {
				t.Fatalf("seed %d: torn within a unit", seed)
			}
			what += fmt.Sprint(unit[0])
		}
		outcomes[what] = true
		outcomes[fmt.Sprint("fresh ", after.Bytes("fresh") != nil)] = true
	}
	for _, want := range []string{"1", "222", "122", "2", "102", "fresh true", "fresh false"} {
		if !outcomes[want] {
			t.Errorf("outcome %q never happened; these did: %v", want, outcomes)
		}
	}
}

func TestInjected(t *testing.T) {
	d := New(Options{CapacityBytes: 2048})
	f, err := d.Create("a")
	must(t, err)
	decide, hit := FailNth(1, 1, syscall.EIO, Write)
	d.Inject(decide)
	for i := range 3 {
		_, err := f.WriteAt(units(t, 1, 1), 0)
		if errors.Is(err, syscall.EIO) != (i == 1) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if !hit.Load() {
		t.Error("the failure was not noted")
	}
	d.Inject(nil)
	if n, err := f.WriteAt(units(t, 5, 2), 512); n != 3*512 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write beyond the capacity: %d, %v", n, err)
	}
	if free, err := d.Free(); free != 0 || err != nil {
		t.Errorf("%d bytes free, %v", free, err)
	}
	d.Inject(func(Op) Fault { return Fault{Partial: true, Bytes: 700} })
	buf := units(t, 3, 0)
	if n, err := f.ReadAt(buf, 512); n != 700 || err != io.EOF {
		t.Errorf("short read: %d, %v", n, err)
	}
	d.Inject(func(Op) Fault { return Fault{FlipBit: true} })
	if _, err := f.ReadAt(buf, 512); err != nil || bytes.Equal(buf, units(t, 3, 2)) {
		t.Errorf("no bit was flipped, %v", err)
	}
}
