package ssd_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// verify verifies the table in dir.
func (f *flipped) verify(t *testing.T, dir string) (sparsetable.Verification, []sparsetable.Fault) {
	t.Helper()
	var faults []sparsetable.Fault
	v, err := sparsetable.Verify(t.Context(), f.opts(dir), func(x sparsetable.Fault) { faults = append(faults, x) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.Faults != int64(len(faults)) {
		t.Errorf("%d faults counted, %d reported", v.Faults, len(faults))
	}
	return v, faults
}

// names returns the table's files whose names have that ending, in order.
func (f *flipped) names(suffix string) (all []string) {
	for name := range f.files {
		if strings.HasSuffix(name, suffix) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func TestVerify(t *testing.T) {
	f := makeFlipped(t)
	dir := filepath.Join(t.TempDir(), "table")
	f.write(t, dir)
	v, faults := f.verify(t, dir)
	if len(faults) > 0 || v.Kind != sparsetable.KindSSD || v.Snapshots != 1 || v.Rows != int64(len(f.rows)) || v.TotalRows != v.Rows || v.Buckets == 0 || v.ReadBytes < v.Buckets*512 {
		t.Fatalf("%+v, %v", v, faults)
	}

	buckets, deltas := f.names(".bucket"), f.names(".delta")
	last := buckets[len(buckets)-1]
	for _, c := range []struct {
		name   string
		damage func(path func(string) string) error
		file   string
		reason string
	}{
		{"missing bucket file", func(path func(string) string) error { return os.Remove(path(last)) }, last, "in none of the table's directories"},
		{"missing delta file", func(path func(string) string) error { return os.Remove(path(deltas[0])) }, deltas[0], "in none of the table's directories"},
		{"short bucket file", func(path func(string) string) error { return os.Truncate(path(last), 4096) }, last, "the file ends here"},
		{"short delta file", func(path func(string) string) error { return os.Truncate(path(deltas[0]), 4096) }, deltas[0], "the file ends here"},
		{"damaged header", func(path func(string) string) error { return flipByte(path(last), 20) }, last, "checksum"},
		{"damaged delta file", func(path func(string) string) error { return flipByte(path(deltas[0]), 100) }, deltas[0], "checksum"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.write(t, dir)
			if err := c.damage(func(name string) string { return filepath.Join(dir, name) }); err != nil {
				t.Fatal(err)
			}
			_, faults := f.verify(t, dir)
			if len(faults) != 1 || filepath.Base(faults[0].File) != filepath.Base(c.file) || !strings.Contains(faults[0].Reason, c.reason) {
				t.Errorf("faults %v", faults)
			}
		})
	}
}

func flipByte(path string, at int64) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[at] ^= 4
	return os.WriteFile(path, b, 0o666)
}

// TestVerifyNamesBuckets damages two buckets. Verify must name the file, the offset and the slot of
// each, and must not stop at the first.
func TestVerifyNamesBuckets(t *testing.T) {
	f := makeFlipped(t)
	dir := filepath.Join(t.TempDir(), "table")
	// Which buckets are in use only the index tells: all are damaged once, and
	// the offsets that Verify names are those of buckets in use.
	f.write(t, dir)
	for _, name := range f.names(".bucket") {
		b := slices.Clone(f.files[name])
		for at := 4096 + 40; at < len(b); at += 512 {
			b[at] ^= 1
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	v, all := f.verify(t, dir)
	if len(all) < 3 || int64(len(all)) > v.Buckets {
		t.Fatalf("%d faults in %d buckets", len(all), v.Buckets)
	}
	f.write(t, dir)
	want := []sparsetable.Fault{all[1], all[len(all)-1]}
	for _, x := range want {
		if filepath.Dir(x.File) != dir || x.Slot < 0 || x.Offset%512 != 0 || x.Snapshot != f.id || !strings.Contains(x.Reason, "checksum") {
			t.Fatalf("fault %+v", x)
		}
		if err := flipByte(x.File, x.Offset+40); err != nil {
			t.Fatal(err)
		}
	}
	_, faults := f.verify(t, dir)
	if len(faults) != 2 {
		t.Fatalf("faults %v", faults)
	}
	for i, x := range faults {
		if x.Offset != want[i].Offset || x.Slot != want[i].Slot || x.File != want[i].File {
			t.Errorf("fault %v, want %v", x, want[i])
		}
		text := fmt.Sprintf("%s at offset %d: slot %d: ", x.File, x.Offset, x.Slot)
		if !strings.Contains(x.String(), text) {
			t.Errorf("%q lacks %q", x, text)
		}
	}
}

// TestVerifyIndex makes an index wrong in memory, which no checksum can detect.
func TestVerifyIndex(t *testing.T) {
	f := makeFlipped(t)
	for how, reason := range map[string]string{
		"filter":     "the filter does not have key",
		"location":   "bucket of slot",
		"no bucket":  "rows are in buckets, but the snapshot counts",
		"live bytes": "live bytes, but the index refers to",
		"sums":       "rows are in buckets, but the snapshot counts",
	} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			f.write(t, dir)
			o := f.opts(dir)
			o.ReadOnly = true
			o.SSD.HotBytes = -1 // nobody else looks at the index
			tab, err := sparsetable.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer tab.Close()
			faults, slot, err := ssd.VerifyTampered(t.Context(), tab, how)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(faults, func(x sparsetable.Fault) bool {
				return strings.Contains(x.Reason, reason) && (x.Slot < 0 || x.Slot == int64(slot))
			})
			if !found {
				t.Errorf("slot %d: no fault with %q: %v", slot, reason, faults)
			}
		})
	}
}

func TestVerifyMemory(t *testing.T) {
	dir := t.TempDir()
	o := sparsetable.Options{Dir: dir, Layout: stressLayout}
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	fillRows(t, tab, 0, 3000)
	for range 2 {
		tabletest.Commit(t, tab, nil)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	var faults []sparsetable.Fault
	check := func() sparsetable.Verification {
		faults = nil
		v, err := sparsetable.Verify(t.Context(), o, func(x sparsetable.Fault) { faults = append(faults, x) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := check(); len(faults) > 0 || v.Snapshots != 2 || v.Rows != 6000 {
		t.Errorf("%+v, %v", v, faults)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.rows"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	if err := flipByte(files[1], 500); err != nil {
		t.Fatal(err)
	}
	if v := check(); len(faults) != 1 || faults[0].File != files[1] || v.Rows != 3000 {
		t.Errorf("%+v, %v", v, faults)
	}
}

// fillRows trains n rows, beginning with key first.
func fillRows(t *testing.T, tab sparsetable.Table, first, n int) {
	t.Helper()
	l := tab.Layout()
	for from := first; from < first+n; from += 500 {
		keys := make([]uint64, min(500, first+n-from))
		for i := range keys {
			keys[i] = tabletest.SpreadKey(from + i)
		}
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			ws.Row(i)[0] = float32(from + i)
			l.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
		}
		ws.Release()
	}
}

// TestDetailsAndCompact compacts a table whose files are half dead. Its counters must continue when
// the table is opened again.
func TestDetailsAndCompact(t *testing.T) {
	f := makeFlipped(t)
	dir := t.TempDir()
	f.write(t, dir)
	o := f.opts(dir)
	o.SSD.MaxSpaceAmplification = 100
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ssd.WaitRestored(tab)
	before, err := sparsetable.DetailsOf(t.Context(), tab)
	if err != nil {
		t.Fatal(err)
	}
	if before.Lifetime.Pulls != 16 || before.Lifetime.Lookups != 8000 || before.Lifetime.Created != 8000 || before.Lifetime.FlushedRows == 0 || before.Lifetime.WriteAmplification < 1 {
		t.Errorf("lifetime %+v", before.Lifetime)
	}
	if before.Stats.Pulls != 0 || before.Stats.Rows != int64(len(f.rows)) {
		t.Errorf("stats %+v", before.Stats)
	}
	slots, least, most := int64(0), int64(0), int64(0)
	for _, b := range before.Occupancy {
		slots += b.Slots
		least += b.Slots * int64(b.MinRows)
		most += b.Slots * int64(b.MaxRows)
	}
	if rows := before.Stats.Rows; slots != before.Stats.Slots || least > rows || most < rows-before.Stats.CacheRows || before.MaxRows < 1 {
		t.Errorf("%d slots with %d to %d rows, of %+v", slots, least, most, before)
	}
	if r := before.MeasuredFalsePositiveRate(); math.IsNaN(r) || r <= 0 || r > 0.8 { // filters of 8 bytes, halved; 0.14 where buckets have few rows, 0.57 in units of 4096
		t.Errorf("false positives %g", r)
	}
	if b := before.IndexBytesPerMillionKeys(); b < 1e6 || b > 100e6 {
		t.Errorf("%g bytes per million keys", b)
	}
	if d := before.Directories; len(d) != 1 || d[0].Dir != dir || d[0].DiskBytes < d[0].LiveBytes || d[0].LiveBytes == 0 {
		t.Errorf("directories %+v", d)
	}

	p, err := sparsetable.Compact(t.Context(), tab, 0.02, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Files == 0 || p.Files != p.FilesTotal || p.MovedBytes == 0 || p.FreedBytes == 0 {
		t.Errorf("%+v", p)
	}
	info := tabletest.Commit(t, tab, []byte("record"))
	if err := tab.DropSnapshot(f.id); err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	f.id = info.ID
	if _, faults := f.verify(t, dir); len(faults) > 0 {
		t.Errorf("faults after compaction: %v", faults)
	}
	if err := f.read(t, dir, true); err != nil {
		t.Error(err)
	}
	o.ReadOnly = true
	tab, err = sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	after, err := sparsetable.DetailsOf(t.Context(), tab)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := after.Stats.SpaceAmplification, before.Stats.SpaceAmplification; a >= b || a > 1.3 {
		t.Errorf("space amplification %g, before %g", a, b)
	}
	if after.Lifetime.Pulls != 16 || after.Lifetime.CompactedBytes != p.MovedBytes {
		t.Errorf("lifetime %+v", after.Lifetime)
	}
	if _, err := sparsetable.Compact(t.Context(), tab, 0.1, nil); err == nil {
		t.Error("a table opened for reading is compacted")
	}
}

// TestMemoryByPurpose checks that the parts of the memory add up to the total.
func TestMemoryByPurpose(t *testing.T) {
	f := makeFlipped(t)
	dir := t.TempDir()
	f.write(t, dir)
	tab, err := sparsetable.Open(t.Context(), f.opts(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	fillRows(t, tab, 0, 500)
	s := tab.Stats()
	if sum := s.CacheBytes + s.IndexBytes + s.BufferBytes + s.CarryBytes + s.CatalogBytes + s.SetBytes + s.ScratchBytes; sum != s.MemoryBytes || s.MemoryBytes > s.BudgetBytes {
		t.Errorf("%d bytes by purpose: %+v", sum, s)
	}
	for _, part := range []int64{s.CacheBytes, s.IndexBytes, s.FilterBytes, s.BufferBytes, s.CarryBytes, s.CatalogBytes, s.SetBytes, s.ScratchBytes} {
		if part <= 0 {
			t.Errorf("a part without bytes: %+v", s)
		}
	}
}

// TestReadersShareTable checks that a table may be open several times for reading, or once for
// writing, in one process or in several.
func TestReadersShareTable(t *testing.T) {
	f := makeFlipped(t)
	dir := t.TempDir()
	f.write(t, dir)
	open := func(readOnly bool) (sparsetable.Table, error) {
		o := f.opts(dir)
		o.ReadOnly = readOnly
		return sparsetable.Open(t.Context(), o)
	}
	for _, c := range []struct{ first, second, fails bool }{{true, true, false}, {true, false, true}, {false, true, true}, {false, false, true}} {
		a, err := open(c.first)
		if err != nil {
			t.Fatal(err)
		}
		b, err := open(c.second)
		if isInUse(err) != c.fails || err != nil && !c.fails {
			t.Errorf("open to read %v, then %v: %v", c.first, c.second, err)
		}
		if err == nil {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func isInUse(err error) bool { return errors.Is(err, sparsetable.ErrInUse) }

// An error about a bucket file that was truncated names the file and its length, and no slot.
func TestShortFileIsNoBucket(t *testing.T) {
	f := makeFlipped(t)
	dir := t.TempDir()
	f.write(t, dir)
	names := f.names(".bucket")
	path := filepath.Join(dir, names[len(names)-1])
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	_, err := sparsetable.Open(t.Context(), f.opts(dir))
	var corrupt *sparsetable.CorruptionError
	if !errors.As(err, &corrupt) {
		t.Fatal(err)
	}
	if corrupt.File != path || corrupt.Offset != 8192 || corrupt.Bucket || corrupt.Slot != 0 || strings.Contains(err.Error(), "slot") {
		t.Errorf("%+v: %v", corrupt, err)
	}
}

// An error about damage in the catalog is one line that names the file, with an offset only if
// there is one.
func TestDamagedCatalogIsToldInALine(t *testing.T) {
	f := makeFlipped(t)
	files := append(f.names(".sst"), f.names("HEAD")...)
	if len(files) < 2 {
		t.Fatal(files)
	}
	for _, name := range files {
		dir := t.TempDir()
		f.write(t, dir)
		if err := flipByte(filepath.Join(dir, name), 8); err != nil {
			t.Fatal(err)
		}
		_, err := sparsetable.Open(t.Context(), f.opts(dir))
		var corrupt *sparsetable.CorruptionError
		if !errors.As(err, &corrupt) {
			t.Fatalf("%s: %v", name, err)
		}
		if text := err.Error(); corrupt.Offset != -1 || strings.Contains(text, "offset 0") || strings.Contains(text, "\n") || strings.Count(text, dir) != 1 {
			t.Errorf("%s: %s", name, text)
		}
	}
}
