package elevator

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/slots"
)

// at returns the location of a bucket of one unit in a file.
func at(file uint32, offset int) bucketfile.Location {
	return bucketfile.FileStart(file) + bucketfile.Location(offset*(bucketfile.MaxUnits+1)+1)
}

// hashesOf returns the n hashes of a pass.
func hashesOf(pass uint64, n int) (hashes []uint64) {
	for i := range n {
		hashes = append(hashes, pass*1000+uint64(i))
	}
	return hashes
}

// A pass is found by its keys, in whatever order they are. Passes that were announced before it are
// removed, too, with the buckets that were read for them, and later ones stay.
func TestPassesAreTaken(t *testing.T) {
	var l passes
	all := make([]*carry.Buckets, 4)
	for n := range all {
		all[n] = new(carry.Buckets)
		sum := uint64(0)
		for _, h := range hashesOf(uint64(n), 5) {
			sum += h
		}
		l.add(&announcement{pass: int64(n), keys: 5, sum: sum, carry: all[n], list: []uint64{1}})
	}
	if pass, c, gone := l.take(hashesOf(9, 5)); pass != -1 || c != nil || gone != nil || l.number() != 4 {
		t.Errorf("a pass that was not announced: number %d, carries %v, gone %v, %d left", pass, c, gone, l.number())
	}
	if pass, _, _ := l.take(hashesOf(2, 4)); pass != -1 {
		t.Errorf("a part of the keys of a pass is taken for pass %d", pass)
	}
	hashes := hashesOf(2, 5)
	slices.Reverse(hashes)
	pass, c, gone := l.take(hashes)
	if pass != 2 || c != all[2] || !slices.Equal(gone, all[:2]) || l.number() != 1 {
		t.Errorf("pass 2: number %d, carries its buckets: %v, %d gone, %d left", pass, c == all[2], len(gone), l.number())
	}
	if a := l.next(8); a == nil || a.pass != 3 {
		t.Errorf("the next pass to be read for is %+v, want number 3", a)
	}
}

// If the list is full, a Pull of other keys removes the oldest pass.
func TestFullListOfPasses(t *testing.T) {
	var l passes
	for n := range MaxPasses {
		l.add(&announcement{pass: int64(n), keys: 1, sum: uint64(n)})
	}
	if pass, _, gone := l.take(hashesOf(7, 5)); pass != -1 || len(gone) != 1 || l.number() != MaxPasses-1 {
		t.Errorf("number %d, %d gone, %d left", pass, len(gone), l.number())
	}
	if l.list[0].pass != 1 {
		t.Errorf("pass %d is the oldest one, want 1", l.list[0].pass)
	}
}

// The keys of a pass are examined again once all of them were examined. After that comes the next
// pass.
func TestNextPass(t *testing.T) {
	var l passes
	first := &announcement{list: []uint64{1, 2}, again: []uint64{2}}
	l.add(first)
	l.add(&announcement{pass: 1, list: []uint64{3}})
	for n, want := range [][]uint64{{1, 2}, {2}, {3}, nil} {
		a := l.next(2)
		if want == nil {
			if a != nil {
				t.Errorf("call %d: pass %d has keys to be looked at", n, a.pass)
			}
			break
		}
		if a == nil || !slices.Equal(a.list, want) {
			t.Fatalf("call %d: %+v, want keys %v", n, a, want)
		}
		a.list = nil
	}
	l.add(&announcement{pass: 2, list: []uint64{4}})
	if a := l.next(2); a != nil {
		t.Errorf("pass %d is served, which is beyond the next two", a.pass)
	}
}

// The elevator pays if it covers at most payingBytes for each row that a pass lacks.
func TestPayingPace(t *testing.T) {
	for _, c := range []struct {
		round  int64
		passes int
		need   int64
		want   int64
	}{
		{100 * payingBytes, 10, 10, 10 * payingBytes},
		{100 * payingBytes, 10, 9, 0},
		{100 * payingBytes, 20, 9, 5 * payingBytes},
		{0, 1, 0, 0},
	} {
		if got := payingPace(c.round, c.passes, c.need); got != c.want {
			t.Errorf("a round of %d bytes in %d passes that lack %d rows each: pace %d, want %d", c.round, c.passes, c.need, got, c.want)
		}
	}
}

func TestNeed(t *testing.T) {
	var e Elevator
	e.recordNeed(800) // the first pass stands for all before it
	e.recordNeed(1600)
	if got := e.need.Load(); got != 900 {
		t.Errorf("passes that lack 800 and 1600 rows have a mean of %d, want 900", got)
	}
}

// The bytes between two locations are those of the files between them, and parts of the files in
// which they lie.
func TestBytesBetween(t *testing.T) {
	const unit = 512
	files := []bucketfile.Candidate{{File: 2, Bytes: 10 * unit}, {File: 5, Bytes: 4 * unit}, {File: 6, Bytes: 7 * unit}}
	if got := roundBytes(files); got != 21*unit {
		t.Errorf("a round is %d bytes, want %d", got, 21*unit)
	}
	for _, c := range []struct {
		from, end bucketfile.Location
		units     int64
	}{
		{0, bucketfile.FileStart(7), 21},
		{at(2, 3), at(2, 9), 6},
		{at(2, 3), at(5, 1), 8},
		{at(2, 3), at(6, 2), 13},
		{at(3, 1), at(4, 8), 0},   // there is no such file any more
		{at(5, 2), at(5, 100), 2}, // the file has no more bytes
		{at(6, 2), at(2, 3), 0},
	} {
		if got := bytesBetween(files, c.from, c.end, unit); got != c.units*unit {
			t.Errorf("from %v to %v: %d bytes, want %d units", c.from, c.end, got, c.units)
		}
	}
}

// A round takes as many passes as are announced. It is adapted soon when fewer passes are
// announced.
func TestWindow(t *testing.T) {
	e := Elevator{Options: Options{ReadOnly: true}}
	for range 64 {
		e.passes.add(&announcement{})
	}
	if e.setPace(); e.window != 64 {
		t.Errorf("a round has %d passes, and 64 are announced", e.window)
	}
	e.passes.list = e.passes.list[:3]
	for range 100 {
		e.setPace()
	}
	if e.window != 3 {
		t.Errorf("a round has %d passes, and 3 have been announced for 100 passes", e.window)
	}
}

// If nothing has to be read, the elevator finds that out in one round, and is not farther ahead of
// its schedule than allowed. Otherwise, passes that are announced next would have to wait until the
// schedule catches up.
func TestEmptyRound(t *testing.T) {
	const buffer, buckets, words = 8 << 10, 2000, 24
	files, err := bucketfile.Open(t.Context(), bucketfile.State{}, nil, bucketfile.Options{
		Table: 1, RowWords: words, Devices: []blockio.Device{blocktest.New(blocktest.Options{Dir: "dir"})}, BufferBytes: buffer, FileBytes: buffer,
	})
	if err != nil {
		t.Fatal(err)
	}
	for slot := range uint32(buckets) {
		a, err := files.Begin(slot, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		a.Put(uint64(slot), make([]float32, words))
		if _, err := a.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	x, err := slots.New(slots.Options{TargetRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	live := files.LiveFiles()
	round := roundBytes(live)
	if len(live) < 4*stretchesPerRound {
		t.Fatalf("only %d files", len(live))
	}
	for _, pace := range []int64{round, round / 10} {
		for _, from := range []bucketfile.Location{0, at(live[len(live)/3].File, 9)} {
			e := Elevator{Options: Options{Files: files, Index: x, IndexMu: new(sync.RWMutex)}}
			e.at, e.pace = from, pace
			if e.planStretch() {
				t.Error("there is a stretch with stops, and no slot is marked")
			}
			if ahead := min(round, maxLead*pace); -e.due < ahead || -e.due > ahead+ahead/8 {
				t.Errorf("it is %d bytes ahead of its schedule at a pace of %d, want %d, where a round is %d", -e.due, pace, ahead, round)
			}
		}
	}
	if err := errors.Join(x.Close(), files.Close()); err != nil {
		t.Error(err)
	}
}

// The stops of a stretch are its marked slots, in the order in which their buckets lie. If there
// are more than there is room for, the stretch ends earlier, and the next one begins where it
// ended.
func TestFindStops(t *testing.T) {
	const n, room = 200, 16
	x, err := slots.New(slots.Options{TargetRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	for x.Slots() < n {
		if err := x.Grow(); err != nil {
			t.Fatal(err)
		}
	}
	var want []stop
	for slot := range uint32(n) {
		loc := at(1+slot%3, int(slot*7919%1000)) // in no order
		x.Set(slot, uint64(loc))
		if slot%2 == 0 {
			x.Mark(slot)
			want = append(want, stop{loc: loc, slot: slot})
		}
	}
	slices.SortFunc(want, byPlace)
	e := Elevator{Options: Options{Index: x, IndexMu: new(sync.RWMutex)}, stretch: stretch{stops: make([]stop, 0, room)}}
	var got []stop
	for from, end := bucketfile.Location(0), bucketfile.FileStart(4); from < end; {
		next := e.findStops(from, end)
		if next <= from || cap(e.stops) != room {
			t.Fatalf("the stretch from %v ends at %v, with %d of %d stops", from, next, len(e.stops), cap(e.stops))
		}
		got = append(got, e.stops...)
		from = next
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d stops, want these %d: %v", len(got), len(want), want)
	}
	if e.findStops(0, at(1, 1)); len(e.stops) > 1 {
		t.Errorf("a stretch of one place has the stops %v", e.stops)
	}
}
