package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
)

// script is a short history of a room whose disk may fail, together with the snapshots that it may
// have.
type script struct {
	t     testing.TB
	rng   *rand.Rand
	disk  *disk
	room  *room
	saved map[string]map[uint64]float32
	// may are the lists of snapshots, by their records, that there may be now; one, unless
	// something has failed.
	may [][]string
	// copied are the lists that a copy of the catalog may have: it is not brought up to date any
	// more once the disk fails for good.
	copied [][]string
	broken func() bool
	n      int
}

// run runs the script until an error. With goOn it continues after errors, as a table does that is
// opened anew after its catalog has failed.
func (s *script) run(goOn bool) error {
	for _, f := range []func() error{
		s.open,
		s.train, s.train, s.write, s.save,
		s.train, s.save, // it refers to the first one's file
		s.write, s.keepAndDropOldest, s.train, s.save,
		s.dropOldest, s.reopen,
		s.train, s.saveWhileWorking, s.dropOldest, s.write, s.save, s.dropOldest, s.dropOldest,
	} {
		err := f()
		if s.broken == nil || !s.broken() {
			s.copied = slices.Clone(s.may)
		}
		if err == nil {
			continue
		}
		if !goOn {
			return err
		}
		// A sync that failed is not tried again: what it was to make durable may be lost.
		if errors.Is(err, catalog.ErrFailed) || s.room == nil || s.room.files.Flush(context.Background()) != nil {
			if err := s.reopen(); err != nil {
				s.t.Fatalf("after a single fault it cannot be opened: %v", err)
			}
		}
	}
	return nil
}

func (s *script) open() (err error) {
	s.room, err = openRoom(s.t, s.disk, roomOptions{})
	return err
}

// reopen opens the room again with its newest snapshot.
func (s *script) reopen() error {
	if s.room != nil {
		_ = s.room.free() // the disk may have failed
		s.room = nil
	}
	if err := s.open(); err != nil {
		return err
	}
	return s.check()
}

// check checks the snapshots, and the rows of the snapshot with which the room was opened.
func (s *script) check() error {
	var list []string
	for _, x := range s.room.catalog.Snapshots() {
		list = append(list, string(x.Record))
	}
	if !slices.ContainsFunc(s.may, func(l []string) bool { return slices.Equal(l, list) }) {
		return fmt.Errorf("it has the snapshots %q, want those of %q", list, s.may)
	}
	if want := s.saved[string(s.room.opened.Record)]; !maps.Equal(s.room.rows, want) {
		return fmt.Errorf("snapshot %s has %s", s.room.opened.Record, differences(s.room.rows, want))
	}
	s.may = [][]string{list}
	return nil
}

func (s *script) some(n int) (keys []uint64) {
	for _, k := range s.rng.Perm(lifeKeys)[:n] {
		keys = append(keys, uint64(k))
	}
	return keys
}

func (s *script) train() error {
	s.n++
	return s.room.train(float32(s.n), s.some(20)...)
}

func (s *script) write() (err error) {
	for slot := range uint32(tableSlot) {
		if s.rng.IntN(3) == 0 {
			err = errors.Join(err, s.room.write(slot, s.rng.IntN(2) == 0))
		}
	}
	return err
}

func (s *script) save() error { return s.saveWith(func() error { return nil }) }

func (s *script) saveWhileWorking() error {
	return s.saveWith(func() error { return errors.Join(s.train(), s.write()) })
}

// saveWith takes a snapshot and calls a function while it is being written.
func (s *script) saveWith(while func() error) error {
	s.n++
	record := fmt.Sprint("snapshot ", s.n)
	x, err := s.room.store.Fix([]byte(record))
	if err != nil {
		return err
	}
	s.saved[record] = maps.Clone(s.room.rows)
	if err := while(); err != nil {
		_, e := x.Write(context.Background())
		err = errors.Join(err, e)
		if e != nil {
			s.maybe(func(l []string) []string { return append(l, record) })
		} else {
			s.surely(func(l []string) []string { return append(l, record) })
		}
		return err
	}
	if _, err = x.Write(context.Background()); err != nil {
		if errors.Is(err, catalog.ErrFailed) {
			s.maybe(func(l []string) []string { return append(l, record) })
		} // otherwise it is not committed
		return err
	}
	s.surely(func(l []string) []string { return append(l, record) })
	return nil
}

// maybe records that a change of the list may have happened, and surely that it has happened.
func (s *script) maybe(change func([]string) []string) {
	for _, l := range s.may[:len(s.may):len(s.may)] {
		s.may = append(s.may, change(slices.Clone(l)))
	}
}

func (s *script) surely(change func([]string) []string) {
	for i, l := range s.may {
		s.may[i] = change(slices.Clone(l))
	}
}

func (s *script) keepAndDropOldest() error {
	all := s.room.catalog.Snapshots()
	if len(all) == 0 {
		return nil
	}
	k, err := s.room.store.Keep(all[0].ID)
	if err != nil {
		return err
	}
	err = s.dropOldest()
	return errors.Join(err, k.Release())
}

func (s *script) dropOldest() error {
	all := s.room.catalog.Snapshots()
	if len(all) == 0 {
		return nil
	}
	record := string(all[0].Record)
	drop := func(l []string) []string {
		return slices.DeleteFunc(l, func(r string) bool { return r == record })
	}
	s.maybe(drop) // also amid Drop
	err := s.room.store.Drop(all[0].ID)
	if _, e := s.room.catalog.Snapshot(all[0].ID); errors.Is(e, catalog.ErrNoSnapshot) {
		s.surely(drop)
	}
	return err
}

func newScript(t testing.TB, seed uint64, dirs int) *script {
	return &script{t: t, rng: rand.New(rand.NewPCG(seed, 0)), disk: newDisk(t, dirs), saved: map[string]map[uint64]float32{}, may: [][]string{nil}}
}

// operations returns how many operations of the script may fail.
func operations(t *testing.T, seed uint64, dirs int) int {
	t.Helper()
	s := newScript(t, seed, dirs)
	if err := s.run(false); err != nil {
		t.Fatal(err)
	}
	ops := s.disk.count()
	s.room.close()
	return ops
}

// checkReboot opens the disk as it is, and checks that nothing is lost, and that no unneeded file
// is left.
func (s *script) checkReboot(d *disk) error {
	after := &script{t: s.t, disk: d, saved: s.saved, may: slices.Clone(s.may)}
	if err := after.reopen(); err != nil {
		return err
	}
	r := after.room
	wanted := map[string]bool{}
	all := r.catalog.Snapshots()
	for _, x := range all {
		for _, name := range namesOf(x.Deltas) {
			wanted[name] = true
		}
		for _, f := range x.Files {
			wanted[bucketName(f)] = true
		}
	}
	r.close()
	if have := append(d.names(s.t, ".bucket"), d.names(s.t, ".delta")...); len(have) != len(wanted) {
		return fmt.Errorf("on disk are %v, the snapshots have %v", have, slices.Sorted(maps.Keys(wanted)))
	}
	for _, x := range all {
		at, err := openRoom(s.t, d, roomOptions{id: x.ID, readOnly: true})
		if err != nil {
			return fmt.Errorf("snapshot %d: %w", x.ID, err)
		}
		rows := at.rows
		at.close()
		if want := s.saved[string(x.Record)]; !maps.Equal(rows, want) {
			return fmt.Errorf("snapshot %s has %s", x.Record, differences(rows, want))
		}
	}
	return nil
}

// checkCopy opens the disk as if the catalog in its first directory were lost.
func (s *script) checkCopy(d *disk) error {
	s.may = append(slices.Clone(s.may), s.copied...)
	found := catalogcopy.Find(d.mem, []string{"d1"}, quiet)
	if len(found) == 0 {
		if slices.ContainsFunc(s.may, func(l []string) bool { return len(l) == 0 }) {
			return nil
		}
		return errors.New("the catalog has no copy")
	}
	if err := d.mem.RemoveAll("d0/catalog"); err != nil {
		return err
	}
	if err := found[0].Restore("d0/catalog"); err != nil {
		return err
	}
	return s.checkReboot(d)
}

// TestCrash lets the machine crash before any operation of the devices and of the catalog's file
// system. The next process must find the committed snapshots with their rows, possibly the one that
// was in progress, and no other files. The same must hold if it has only a copy of the catalog.
func TestCrash(t *testing.T) {
	for dirs := 1; dirs <= 2; dirs++ {
		t.Run(fmt.Sprint(dirs), func(t *testing.T) {
			seed := testseed.Of(t)
			ops := operations(t, seed, dirs)
			for _, n := range each(seed, ops, 1+5*(dirs-1)) {
				s := newScript(t, seed, dirs)
				var crashed atomic.Bool // the catalog's own goroutines set it too
				s.broken = crashed.Load
				s.disk.setFail(func(op int) error {
					if op < n {
						return nil
					}
					crashed.Store(true)
					return syscall.EIO
				})
				if s.run(false) == nil && !crashed.Load() {
					_ = s.room.free() // it may come now
					came(t, n, ops)
					continue
				}
				if s.room != nil {
					_ = s.room.free()
				}
				err := s.checkReboot(s.disk.afterCrash(seed + uint64(n)))
				if err == nil && dirs > 1 {
					err = s.checkCopy(s.disk.afterCrash(seed + uint64(n)))
				}
				if err != nil {
					t.Fatalf("seed %d, crash before operation %d of %d: %v", seed, n, ops, err)
				}
			}
			t.Logf("%d operations", ops)
		})
	}
}

// came fails the test if operation n was not reached, unless it is one of the last. The number of
// operations varies a little, because files are deleted in the background.
func came(t *testing.T, n, ops int) {
	t.Helper()
	if n < ops*9/10 {
		t.Fatalf("operation %d of %d did not come", n, ops)
	}
}

// each returns the operations that are to fail: every one if the suite runs with new seeds,
// otherwise every step-th, or fewer with -short.
func each(seed uint64, ops, step int) (list []int) {
	switch {
	case testseed.Fresh():
		step = 1
	case testing.Short():
		step = 13
	}
	for n := 1 + int(seed%uint64(step)); n <= ops; n += step {
		list = append(list, n)
	}
	return list
}

// TestFaults makes a single operation fail. The script continues, what is reported as committed
// must be committed, and in the end a snapshot must have all rows.
func TestFaults(t *testing.T) {
	for dirs := 1; dirs <= 2; dirs++ {
		t.Run(fmt.Sprint(dirs), func(t *testing.T) {
			seed := testseed.Of(t)
			ops := operations(t, seed, dirs)
			for _, n := range each(seed, ops, 2+4*(dirs-1)) {
				s := newScript(t, seed, dirs)
				var failed atomic.Bool // the catalog's own goroutines set it too
				s.disk.setFail(func(op int) error {
					if op == n {
						failed.Store(true)
						return syscall.EIO
					}
					return nil
				})
				err := s.run(true)
				if !failed.Load() {
					_ = s.room.free()
					came(t, n, ops)
					continue
				}
				err = errors.Join(err, s.save())
				if err == nil {
					err = s.room.free()
				}
				if err == nil {
					err = s.checkReboot(s.disk)
				}
				if err == nil && dirs > 1 {
					err = s.checkCopy(s.disk)
				}
				if err != nil {
					t.Fatalf("seed %d, operation %d of %d failed: %v", seed, n, ops, err)
				}
			}
			t.Logf("%d operations", ops)
		})
	}
}

// TestRestartAfterUnknownCommit checks that Restart deletes no file that a snapshot refers to of which it is unknown
// whether it is committed.
func TestRestartAfterUnknownCommit(t *testing.T) {
	unknown := 0
	for n := 0; ; n++ {
		s := newScript(t, 1, 1)
		for _, f := range []func() error{s.open, s.train, s.save, s.dropOldest, s.train} {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}
		var reached atomic.Bool // the catalog's own goroutines set it too
		s.disk.setFail(func(op int) error {
			if op <= n {
				return nil
			}
			reached.Store(true)
			return syscall.EIO
		})
		err := s.save()
		s.disk.setFail(nil)
		if errors.Is(err, catalog.ErrFailed) {
			unknown++
			s.room.store.Restart()
			_ = s.room.free() // the catalog has failed
			if err := s.checkReboot(s.disk); err != nil {
				t.Errorf("operation %d: %v", n, err)
			}
		} else {
			s.room.close()
		}
		if !reached.Load() {
			break
		}
	}
	if unknown == 0 {
		t.Error("the outcome of no commit was unknown")
	}
}
