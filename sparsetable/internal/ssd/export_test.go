package ssd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/tabledirs"
	"aibox/sparsetable/internal/verify"
)

// In tests, all tables of this package use the same hash, unless they are of an older version.
func init() { hasherOf = func(uint64) slots.Hasher { return 0x9e3779b97f4a7c15 } }

// HashOf returns the hash of a key in those tables.
func HashOf(key uint64) uint64 { return hasherOf(0).Of(key) }

// OpenOn opens a table on devices and a file system that the test chooses. A new table hashes its
// keys with the hash of that name, see media.
func OpenOn(ctx context.Context, o Options, devices []blockio.Device, fs vfs.FS, hash string) (*Table, error) {
	return openOn(ctx, o, media{devices: devices, fs: fs, hash: hash})
}

// Smallest returns the smallest budget of a table that has that many rows in memory.
func Smallest(l layout.Layout, s Settings, resident int64) int64 {
	o := Options{Dir: "/table", Settings: s}
	o.setDefaults()
	return o.planned(l, 512).Smallest(plan.Load{Resident: resident})
}

// VerifyTampered verifies a table of KindSSD that was just opened, after it has made the index wrong for
// the first slot with a bucket, in the given way.
func VerifyTampered(ctx context.Context, tab contract.Scanner, how string) (faults []verify.Fault, slot uint32, err error) {
	t := tab.(*Table)
	x := t.index
	for x.Location(slot) == 0 {
		slot++
	}
	loc := x.Location(slot)
	switch how {
	case "filter":
		x.ResetFilter(slot)
	case "location":
		other := slot + 1
		for x.Location(other) == 0 {
			other++
		}
		x.Set(slot, x.Location(other))
	case "no bucket":
		x.Set(slot, 0)
	case "live bytes":
		err = t.files.Release(bucketfile.Location(loc))
	case "sums":
		x.Set(slot, 0)
	default:
		err = fmt.Errorf("how to be %s?", how)
	}
	if err != nil {
		return nil, slot, err
	}
	v := &verifier{Report: verify.NewReport(contract.KindSSD, func(f verify.Fault) { faults = append(faults, f) }, nil)}
	err = v.table(ctx, t)
	return faults, slot, err
}

// SetRoom makes the table believe, at each Pull, that the process can have that much more memory.
// The value replaces the result of process.Room.
func SetRoom(t contract.Scanner, room func() int64) {
	s := t.(*Table)
	_ = s.changing.Acquire(context.Background())
	s.room, s.every = room, 0
	s.changing.Release()
}

// Borrowed returns how many bytes of the cache's memory an import or a restore has at present.
func Borrowed(t contract.Scanner) int64 { return t.(*Table).borrowed.Load() }

// LimitCache sets the cache's limit, and returns how many rows the table expects the cache to hold then.
func LimitCache(tab contract.Scanner, limit int64) (fitRows int64, err error) {
	t := tab.(*Table)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	err = t.limitCache(limit)
	return t.fitRows.Load(), err
}

// WaitRestored waits until all rows of the snapshot with which t was opened that come into memory
// have done so.
func WaitRestored(t contract.Scanner) { <-t.(*Table).restored }

// StopBackground stops the background work of a table of KindSSD.
func StopBackground(tab contract.Scanner) {
	t := tab.(*Table)
	t.stop()
	t.stopped.Wait()
}

// DirtyInSnapshot returns how many rows a snapshot of a table of KindSSD has outside of buckets.
func DirtyInSnapshot(t contract.Scanner, id uint64) (int64, error) {
	s, err := t.(*Table).catalog.Snapshot(id)
	return checkpoint.DirtyRows(checkpoint.Upgraded(s).Deltas), err
}

// SetBulk makes imports into a table of KindSSD count as large from that many rows on, gives them
// that much memory, and makes them write to the spool in blocks of minBlock bytes. Values of 0
// change nothing.
func SetBulk(t contract.Scanner, smallRows, arenaBytes int64, minBlock int) {
	b := &t.(*Table).bulk
	if smallRows > 0 {
		b.SmallRows = smallRows
	}
	if arenaBytes > 0 {
		b.ArenaBytes = arenaBytes
	}
	if minBlock > 0 {
		b.MinBlock = minBlock
	}
}

// Hole returns the longest range of a bucket file in a directory of a table of KindSSD that lies
// between two buckets in use and belongs to none.
func Hole(tab contract.Scanner, dir int) (name string, from, to int64) {
	t := tab.(*Table)
	unit := int64(t.files.Unit())
	all := slices.Sorted(verify.Locations(t.index))
	for i, next := range all[1:] {
		l := all[i]
		if d, _ := t.files.DirOf(l.File()); int(d) != dir || next.File() != l.File() {
			continue
		}
		if end := l.Offset() + int64(l.Units()); (next.Offset()-end)*unit > to-from {
			name, from, to = filepath.Base(t.files.Path(l.File())), end*unit, next.Offset()*unit
		}
	}
	return name, from, to
}

// CheckIndex compares the bucket files' counts with the index.
func CheckIndex(t contract.Scanner) error {
	s := t.(*Table)
	s.rewrite.Lock()
	defer s.rewrite.Unlock()
	return s.files.CheckLive(verify.Locations(s.index))
}

// Space returns the size of the bucket files without those that are being deleted or that only
// snapshots need, the part of it that is in use, and how many bytes more than are in use are always
// allowed. It acquires no lock that writers hold, so it can be called in the middle of a step.
func Space(tab contract.Scanner) (total, live, allowed int64) {
	t := tab.(*Table)
	all, _ := t.files.Space()
	return all.TotalBytes - all.DyingBytes - all.KeptBytes, all.LiveBytes, t.space.AlwaysAllowed()
}

// Buckets calls fn with the path of the file and the extent of each bucket in
// use, in bytes.
func Buckets(tab contract.Scanner, fn func(path string, from, to int64, slot uint32)) {
	t := tab.(*Table)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	unit := int64(t.files.Unit())
	for slot := range t.index.Slots() {
		if l := bucketfile.Location(t.index.Location(slot)); l != 0 {
			fn(t.files.Path(l.File()), l.Offset()*unit, (l.Offset()+int64(l.Units()))*unit, slot)
		}
	}
}

// SetNextFile sets the number that the newest snapshot of a closed table gives to the next bucket
// file. dir is the first directory of the table.
func SetNextFile(dir string, fs vfs.FS, number uint32) (err error) {
	c, err := catalog.Open(catalog.Options{
		Dir: filepath.Join(dir, tabledirs.CatalogName), FS: fs, MustExist: true,
		Format: catalog.Format{PageSlots: slots.DefaultPageSlots},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := c.Load(0, func(uint32, []byte) error { return nil })
	if err != nil {
		return err
	}
	w, err := c.Begin()
	if err != nil {
		return err
	}
	before := s.ID
	s.Counters["next_file"] = int64(number)
	if err := w.Commit(s); err != nil {
		return err
	}
	return c.Drop(before)
}

// DirOfKey returns the directory with the bucket of a key's slot or, if there is no bucket, the
// directory whose delta files have the key's row.
func DirOfKey(tab contract.Scanner, key uint64) string {
	t := tab.(*Table)
	t.indexMu.RLock()
	defer t.indexMu.RUnlock()
	loc := t.bucketOf(t.hash.Of(key))
	if loc == 0 {
		for i, dir := range t.dirs.Names {
			if checkpoint.Covers(t.opened, catalog.Delta{Dir: uint16(i)}).Hash(t.hash.Of(key)) {
				return dir
			}
		}
	}
	return filepath.Dir(t.files.Path(loc.File()))
}

// DeltaBytes returns the size of a delta file with that many dirty rows.
func DeltaBytes(t contract.Scanner, rows int64) int64 {
	return t.(*Table).checkpoints.Deltas.FileBytes(rows)
}

// DeltaFileBytes returns the size of the delta file of a snapshot.
func DeltaFileBytes(t contract.Scanner, id uint64) (bytes int64) {
	s, err := t.(*Table).catalog.Snapshot(id)
	if err != nil {
		panic(err)
	}
	for _, d := range s.Deltas {
		bytes += d.Bytes
	}
	return bytes
}

// WritesBuckets reports whether a goroutine is writing buckets of a table on SSD at this moment.
func WritesBuckets(tab contract.Scanner) bool {
	t := tab.(*Table)
	if !t.rewrite.TryLock() {
		return true
	}
	t.rewrite.Unlock()
	return false
}

// MayDropRows reports whether clean rows could be dropped from the cache at this moment.
func MayDropRows(tab contract.Scanner) bool {
	t := tab.(*Table)
	if !t.rewrite.moving.TryLock() {
		return false
	}
	t.rewrite.moving.Unlock()
	return true
}

// DeltasOf returns the names of the delta files of a snapshot, the oldest first.
func DeltasOf(t contract.Scanner, id uint64) (names []string) {
	s, err := t.(*Table).catalog.Snapshot(id)
	if err != nil {
		panic(err)
	}
	for _, d := range s.Deltas {
		names = append(names, d.Name)
	}
	return names
}

// OwnDeltaRows returns how many rows a snapshot has written into delta files.
func OwnDeltaRows(t contract.Scanner, id uint64) (rows int64) {
	s, err := t.(*Table).catalog.Snapshot(id)
	if err != nil {
		panic(err)
	}
	for _, d := range s.Deltas {
		if d.Snapshot == id {
			rows += d.DirtyRows
		}
	}
	return rows
}

// DeltaLayersOf returns at how many different instants the delta files of a snapshot were written.
func DeltaLayersOf(t contract.Scanner, id uint64) int {
	s, err := t.(*Table).catalog.Snapshot(id)
	if err != nil {
		panic(err)
	}
	return len(checkpoint.Layers(s.Deltas))
}

// CleanRowsOf returns how many clean rows the delta files of a snapshot have.
func CleanRowsOf(t contract.Scanner, id uint64) (rows int64) {
	s, err := t.(*Table).catalog.Snapshot(id)
	if err != nil {
		panic(err)
	}
	for _, d := range s.Deltas {
		rows += d.Rows - d.DirtyRows
	}
	return rows
}

// VerifyOpen verifies a table of KindSSD that is open and that was not changed since it was opened.
func VerifyOpen(ctx context.Context, tab contract.Scanner) (faults []verify.Fault, err error) {
	t := tab.(*Table)
	if !t.opts.ReadOnly {
		return nil, t.cache.Check()
	}
	v := &verifier{Report: verify.NewReport(contract.KindSSD, func(f verify.Fault) { faults = append(faults, f) }, nil)}
	WaitRestored(tab)
	return faults, v.table(ctx, t)
}
