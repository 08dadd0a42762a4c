package sparsetable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/offheap"
)

// located is a slot with a bucket.
type located struct {
	at   bucketfile.Location
	slot uint32
}

// verifyMemory is the memory for verifying, borrowed from the cache.
type verifyMemory struct {
	memory []byte
	list   []located // room for some buckets, in the order in which they lie on the devices
	seen   []uint64  // a bit for each row outside of buckets, set if its bucket has the row, too
	broken map[uint32]bool
}

// minVerifyList is the least number of entries that list has room for.
const minVerifyList = 256

// borrowForVerify borrows the memory for verifying: as much as a list of all slots
// needs, or as much as there is.
func (t *ssd) borrowForVerify(ctx context.Context) (*verifyMemory, error) {
	const each = int64(unsafe.Sizeof(located{}))
	rows := t.outside.Rows()
	bits := int64(rows+63) / 64 * 8
	n := max(minVerifyList, int64(t.index.Slots()))
	bytes, err := t.borrowUpTo(ctx, bits+n*each, bits+minVerifyList*each)
	if err != nil {
		return nil, err
	}
	if bytes == 0 {
		return nil, t.overBudget("verifying", t.aLittleMore())
	}
	m := &verifyMemory{broken: map[uint32]bool{}}
	if m.memory, err = offheap.Map(int(bytes)); err != nil {
		t.giveBack(bytes)
		return nil, err
	}
	m.seen = offheap.Uint64s(m.memory[:bits])
	m.list = unsafe.Slice((*located)(unsafe.Pointer(unsafe.SliceData(m.memory[bits:]))), (bytes-bits)/each)
	return m, nil
}

func (m *verifyMemory) giveBack(t *ssd) error {
	t.giveBack(int64(len(m.memory)))
	return offheap.Unmap(m.memory)
}

// parts divides the locations of all buckets into ascending ranges, each of which
// has no more buckets than the list has room for. For each range it fills the list,
// sorts it and calls fn with it. That takes two passes over the index for each
// range, and some more to find the ranges.
func (m *verifyMemory) parts(t *ssd, fn func(list []located) error) error {
	count := func(from, to bucketfile.Location) (n int) {
		for l := range t.locations {
			if from <= l && l <= to {
				n++
			}
		}
		return n
	}
	var part func(from, to bucketfile.Location) error
	part = func(from, to bucketfile.Location) error {
		n := count(from, to)
		if n == 0 {
			return nil
		}
		if n > len(m.list) && from < to { // several buckets at one location are a fault, which two of them show
			mid := from + (to-from)/2
			if err := part(from, mid); err != nil {
				return err
			}
			return part(mid+1, to)
		}
		list := m.list[:0]
		for s := range t.index.Slots() {
			if l := bucketfile.Location(t.index.Location(s)); l != 0 && from <= l && l <= to && len(list) < len(m.list) {
				list = append(list, located{l, s})
			}
		}
		slices.SortFunc(list, func(a, b located) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.slot, b.slot)) })
		return fn(list)
	}
	first, last := ^bucketfile.Location(0), bucketfile.Location(0)
	for l := range t.locations {
		first, last = min(first, l), max(last, l)
	}
	if last == 0 {
		return nil
	}
	return part(first, last)
}

// buckets verifies all buckets, in the order in which they lie on the devices,
// and returns the number of their rows.
func (v *verifier) buckets(ctx context.Context, t *ssd, m *verifyMemory) (rows int64, err error) {
	q := t.files.NewQueue()
	requests := make([]bucketfile.Request, rewriteBatch)
	submit := make([]*bucketfile.Request, 0, rewriteBatch)
	var done []*bucketfile.Request
	var last located
	err = m.parts(t, func(all []located) error {
		for _, b := range all {
			if a := last.at; a != 0 && a.File() == b.at.File() && a.Offset()+int64(a.Units()) > b.at.Offset() {
				v.found(Fault{
					File: t.files.Path(b.at.File()), Offset: b.at.Offset() * int64(t.files.Unit()), Slot: int64(b.slot),
					Reason: fmt.Sprintf("its bucket overlaps that of slot %d", last.slot),
				})
			}
			last = b
		}
		for len(all) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			submit = submit[:0]
			bytes := int64(0)
			for len(submit) < min(rewriteBatch, len(all)) && bytes <= t.plan.ReadBytes/4 {
				i := len(submit)
				requests[i] = bucketfile.Request{Slot: all[i].slot, Location: all[i].at}
				bytes += int64(all[i].at.Units()) * int64(t.files.Unit())
				submit = append(submit, &requests[i])
			}
			all = all[len(submit):]
			q.Submit(submit)
			v.done.ReadBytes += bytes
			var failed error
			for q.Pending() > 0 {
				done = q.Wait(done[:0], 1)
				for _, r := range done {
					n, err := v.bucket(ctx, t, m, r)
					failed = errors.Join(failed, err)
					rows += n
					v.done.Rows += n
				}
				q.Finish(done)
			}
			if failed != nil {
				return failed
			}
			v.progress(v.done)
		}
		return nil
	})
	return rows, err
}

// bucket verifies the bucket that r has read and returns the number of its rows.
func (v *verifier) bucket(ctx context.Context, t *ssd, m *verifyMemory, r *bucketfile.Request) (rows int64, err error) {
	v.done.Buckets++
	if r.Err != nil {
		m.broken[r.Slot] = true
		return 0, v.foundError(ctx, tableError(r.Err))
	}
	wrong := func(format string, args ...any) {
		v.found(Fault{
			File: t.files.Path(r.Location.File()), Offset: r.Location.Offset() * int64(t.files.Unit()),
			Slot: int64(r.Slot), Reason: fmt.Sprintf(format, args...),
		})
	}
	b := &r.Bucket
	n := b.Len()
	for i := range n {
		key := b.Key(i)
		h := t.hash.Of(key)
		for j := range i { // a bucket has few rows
			if b.Key(j) == key {
				wrong("key %d is there twice", key)
			}
		}
		if s := t.index.Slot(h); s != r.Slot {
			wrong("key %d belongs to slot %d", key, s)
		}
		if !t.index.MayContain(r.Slot, h) {
			wrong("the filter does not have key %d", key)
		}
		if !t.trained(b.Row(i)) {
			wrong("key %d has a row that was never trained", key)
		}
		if at, ok := t.outside.Find(h); ok {
			m.seen[at/64] |= 1 << (at % 64)
		}
	}
	return int64(n), nil
}

// outside verifies for each row outside of buckets that its bucket has
// the key if the file says so, and does not have it otherwise. It skips rows whose
// bucket could not be read.
func (v *verifier) outside(ctx context.Context, t *ssd, m *verifyMemory) error {
	return t.eachOutside(ctx, func(file int, r *deltafile.Reader, rows int) error {
		for i := range rows {
			key, info, _ := r.Entry(i)
			at, ok := t.outside.Current(file, r, i)
			if !ok {
				continue // a newer file has the key, or its bucket
			}
			slot := t.index.Slot(t.hash.Of(key))
			stored, have := info&1 != 0, m.seen[at/64]&(1<<(at%64)) != 0
			if stored == have || m.broken[slot] {
				continue
			}
			f := Fault{Offset: -1, Slot: int64(slot), Reason: fmt.Sprintf("the snapshot's delta file says that the bucket has a version of key %d, but the bucket lacks it", key)}
			if have {
				f.Reason = fmt.Sprintf("the snapshot's delta file says that no bucket has key %d, but the bucket has it", key)
			}
			if l := bucketfile.Location(t.index.Location(slot)); l != 0 {
				f.File, f.Offset = t.files.Path(l.File()), l.Offset()*int64(t.files.Unit())
			}
			v.found(f)
		}
		return nil
	})
}
