package checkpoint

import (
	"errors"
	"iter"
	"math"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
)

// reserveSpace reserves disk space for the rows that the snapshot must write: those that are dirty and in
// no inherited file, and those that are pinned for training. It runs while the state is being
// fixed, so no others are added. REQUIRES: no bucket is written, and no row is pinned or released.
func (s *Snapshot) reserveSpace(st rowcache.Stats, updatable iter.Seq[[]uint32]) error {
	rows := st.Dirty - s.dump.saved
	if len(s.dump.parts) > 1 {
		return s.reserveEach(rows, st.InFlight, updatable)
	}
	err := s.reserveRows(rows + st.InFlight)
	if errors.Is(err, bucketfile.ErrNoSpace) {
		others := s.pinnedOthers(updatable) // counts pinned dirty rows only once
		return s.reserveRows(rows + others[0])
	}
	return err
}

// reserveRows reserves space for rows[i] rows in directory i; the last number also applies to all
// further directories.
func (s *Snapshot) reserveRows(rows ...int64) error {
	for i, p := range s.dump.parts {
		bytes := s.c.Deltas.FileBytes(rows[min(i, len(rows)-1)])
		if err := s.c.files.Claim(p.dir, bytes, s.free[p.dir]); err != nil {
			s.dump.adjustCharges(make([]int64, i)...)
			return err
		}
		p.reserved = bytes
	}
	return nil
}

// reserveEach is reserveSpace for several directories. The number of rows for each is known only after
// counting, which takes longer with more dirty rows. So it counts only if the directories have
// budgets, or may not have room for several times all rows.
func (s *Snapshot) reserveEach(dirty, pinned int64, updatable iter.Seq[[]uint32]) error {
	c, dirs := s.c, int64(len(s.dump.parts))
	if _, each := c.files.Space(); each[0].BudgetBytes == 0 && dirs*c.Deltas.FileBytes(dirty+pinned) <= slices.Min(s.free) {
		return s.reserveRows(dirty + pinned)
	}
	rows := s.pinnedOthers(updatable)
	pick := rowcache.Pick{Has: rowcache.Dirty}
	if s.dump.inherits {
		pick.Lacks = Saved
	}
	left := dirty
	for at, end := uint32(0), false; !end; {
		s.dump.locate(func() {
			at, end = c.Cache.VisitFrom(at, pick, math.MaxInt, func(e rowcache.Entry) rowcache.Change {
				rows[s.dump.dirOf(e.Key)]++
				left--
				return rowcache.Change{}
			})
		})
	}
	for i := range rows { // rows that moved meanwhile may have been missed
		rows[i] += max(0, left)
	}
	return s.reserveRows(rows...)
}

// reserveClean reserves disk space for clean rows behind the dirty ones, and reports whether there is
// room. Each directory gets its part and a fifth more; rows beyond that are left out.
func (d *Dump) reserveClean(rows int64) bool {
	if n := int64(len(d.parts)); n > 1 {
		rows = (rows/n + 1) * 6 / 5
	}
	// The last block of dirty rows is then written in its full length.
	bytes := int64(d.c.Deltas.BlockBytes()) + d.c.Deltas.FileBytes(rows)
	for i, p := range d.parts {
		free, err := d.c.Deltas.Devices[p.dir].Free()
		if err != nil || d.c.files.Claim(p.dir, bytes, free) != nil {
			for _, q := range d.parts[:i] {
				d.adjustCharge(q, q.reserved-bytes)
			}
			return false
		}
		p.reserved += bytes
		p.cap = rows
	}
	return true
}

// adjustCharges changes the charges to the given sizes.
func (d *Dump) adjustCharges(bytes ...int64) {
	for i, n := range bytes {
		d.adjustCharge(d.parts[i], n)
	}
}

func (d *Dump) adjustCharge(p *dumpPart, bytes int64) {
	d.c.files.Charge(p.dir, bytes-p.reserved)
	p.reserved = bytes
}

// chargeWritten changes the charges to the sizes of the files.
func (d *Dump) chargeWritten() {
	for _, p := range d.parts {
		d.adjustCharge(p, p.bytes)
	}
}

// chargeFixed lowers the charge to that of the rows that were saved so far or are yet to be saved.
// A row that is being saved meanwhile may count twice.
func (d *Dump) chargeFixed() {
	if len(d.parts) > 1 {
		return // the distribution of the rows over the files is unknown
	}
	rows := d.c.Cache.Unsaved()
	d.mu.Lock()
	rows += d.counts.dirtyRows - d.saved
	d.mu.Unlock()
	if bytes := d.c.Deltas.FileBytes(rows); bytes < d.parts[0].reserved {
		d.adjustCharges(bytes)
	}
}

// pinnedOthers is, for each directory, how many pinned rows the snapshot must write that are not
// dirty or are in an inherited file. REQUIRES: no row is pinned or released.
func (s *Snapshot) pinnedOthers(updatable iter.Seq[[]uint32]) []int64 {
	c, rows := s.c, make([]int64, len(s.dump.parts))
	for refs := range updatable {
		s.dump.locate(func() {
			c.Cache.Visit(refs, func(_ int, e rowcache.Entry) rowcache.Change {
				if (e.Flags&rowcache.Dirty == 0 || s.dump.inherits && e.Flags&Saved != 0) && c.Trained(e.Row) {
					rows[s.dump.dirOf(e.Key)]++
				}
				return rowcache.Change{}
			})
		})
	}
	return rows
}
