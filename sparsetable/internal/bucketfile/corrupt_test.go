package bucketfile

import (
	"errors"
	"slices"
	"testing"

	"aibox/sparsetable/internal/blockio/blocktest"
)

// TestCorruptByte changes single bytes of a file. Each change within a bucket must be an error that
// names the bucket, and the other buckets must be read and scanned as before.
func TestCorruptByte(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	for slot := range uint32(8) {
		for m.index[slot].loc == 0 {
			must(t, m.append(slot, 20+int(slot)*20, false))
		}
	}
	must(t, m.set.Flush(t.Context()))
	name := m.fileName(1)
	good := m.mem[0].Bytes(name)
	for at := fileHeaderBytes; at < len(good); at += 41 {
		bad := slices.Clone(good)
		bad[at] ^= 0x10
		m.mem[0].SetBytes(name, bad)
		hit := map[uint32]bool{}
		for slot, c := range m.index {
			from := int(c.loc.Offset()) * m.set.Unit()
			inside := at >= from && at < from+bucketBytes(c.rows, 3)
			err := m.set.Read(slot, c.loc, func(b *Bucket) error { return c.checkBucket(slot, b) })
			var corrupt *CorruptionError
			switch {
			case !inside:
				must(t, err)
			case !errors.As(err, &corrupt) || !errors.Is(err, ErrCorrupt):
				t.Fatalf("byte %d changed, slot %d: %v", at, slot, err)
			case corrupt.Slot != slot || corrupt.Offset != int64(from) || corrupt.File != "dir0/"+name || corrupt.Reason == "":
				t.Errorf("byte %d changed: %+v", at, corrupt)
			}
			hit[slot] = inside
		}
		found := 0
		err := m.set.ScanFile(t.Context(), 1, func(loc Location, b *Bucket) error {
			if c := m.index[b.Slot]; c.loc == loc {
				found++
				return c.checkBucket(b.Slot, b)
			}
			return nil
		})
		want := len(m.index)
		for _, inside := range hit {
			if inside {
				want--
			}
		}
		if found != want || want < len(m.index) && !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d changed: the scan found %d buckets, want %d; %v", at, found, want, err)
		}
	}
	m.mem[0].SetBytes(name, good)
	c := m.index[3]
	if err := m.set.Read(4, c.loc, func(*Bucket) error { return nil }); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a bucket of another slot: %v", err)
	}
	for _, loc := range []Location{c.loc + 1, c.loc - 1, c.loc + 1<<unitsBits, makeLocation(1, 0, 1), makeLocation(1, maxOffset, 1)} {
		if err := m.set.Read(3, loc, func(*Bucket) error { return nil }); !errors.Is(err, ErrCorrupt) {
			t.Errorf("location %v: %v", loc, err)
		}
	}
	if err := m.set.Read(3, makeLocation(9, 8, 1), func(*Bucket) error { return nil }); !errors.Is(err, ErrUnknownFile) {
		t.Errorf("a location in no file: %v", err)
	}
	m.close()
}

// TestReadFaults flips bits of the bytes that the device returns, and truncates them.
func TestReadFaults(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	for m.index[1].loc == 0 {
		must(t, m.append(1, 75, false)) // 3 units, 4 bytes of padding
	}
	must(t, m.set.Flush(t.Context()))
	m.mem[0].Inject(func(op blocktest.Op) blocktest.Fault { return blocktest.Fault{Partial: true, Bytes: 512} })
	if err := m.checkIndex(m.index); err == nil {
		t.Error("a short read passes")
	}
	m.mem[0].Inject(func(op blocktest.Op) blocktest.Fault { return blocktest.Fault{FlipBit: true} })
	caught := 0
	for range 50 {
		if err := m.checkIndex(m.index); errors.Is(err, ErrCorrupt) {
			caught++
		} else if err != nil {
			t.Error(err)
		}
	}
	if caught < 45 { // the others fell into the padding, and changed nothing
		t.Errorf("%d of 50 flipped bits were caught", caught)
	}
	m.mem[0].Inject(nil)
	m.close()
}

// TestHeaderCut opens files of whose header the device returns only a part.
func TestHeaderCut(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	must(t, m.append(1, 75, false))
	must(t, m.snapshot())
	name := m.fileName(1)
	m.close()
	for _, bytes := range []int{0, 1, headerBytes, fileHeaderBytes - 1} {
		m.mem[0].Inject(func(op blocktest.Op) blocktest.Fault {
			return blocktest.Fault{Partial: op.Kind == blocktest.Read, Bytes: bytes}
		})
		err := m.open()
		var corrupt *CorruptionError
		if !errors.As(err, &corrupt) || corrupt.Offset != int64(bytes) || corrupt.File != "dir0/"+name {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}

// TestScanCut scans a file that the device truncates anywhere. The buckets before that must be
// found, and the truncation must be reported.
func TestScanCut(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	for i := range uint32(20) {
		must(t, m.append(i%4+1, 5+int(i*7)%60, false))
	}
	must(t, m.set.Flush(t.Context()))
	file := m.set.LiveFiles()[0].File
	var ends []int64
	scan := func() error {
		ends = ends[:0]
		return m.set.ScanFile(t.Context(), file, func(loc Location, _ *Bucket) error {
			ends = append(ends, (loc.Offset()+int64(loc.Units()))*int64(m.set.Unit()))
			return nil
		})
	}
	must(t, scan())
	whole := slices.Clone(ends)
	if len(whole) < 5 {
		t.Fatalf("%d buckets in the file", len(whole))
	}
	cut := 0
	m.mem[0].Inject(func(op blocktest.Op) blocktest.Fault {
		if op.Kind != blocktest.Read {
			return blocktest.Fault{}
		}
		return blocktest.Fault{Partial: true, Bytes: max(0, cut-int(op.Offset))}
	})
	for cut = 0; int64(cut) < whole[len(whole)-1]; cut += 100 {
		if err := scan(); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		want := 0
		for want < len(whole) && whole[want] <= int64(cut) {
			want++
		}
		if !slices.Equal(ends, whole[:want]) {
			t.Fatalf("cut at %d: buckets that end at %v, of %v", cut, ends, whole)
		}
	}
	m.mem[0].Inject(nil)
	m.close()
}
