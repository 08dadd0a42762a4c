package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/offheap"
)

// batch is the number of buckets read at a time.
const batch = 128

// located is a slot with a bucket.
type located struct {
	at   bucketfile.Location
	slot uint32
}

// memory is the working memory of Verify.
type memory struct {
	memory []byte
	list   []located // some buckets, in the order in which they lie on the devices
	seen   []uint64  // a bit for each row outside of buckets, set if its bucket also has the row
	broken map[uint32]bool
}

// minList is the minimum length of list.
const minList = 256

// Memory returns how many bytes Verify takes: at most those for a list of all slots, and at least
// those that it cannot do without.
func (t *Table) Memory() (most, least int64) {
	bits := int64(t.Outside.Rows()+63) / 64 * 8
	n := max(minList, int64(t.Index.Slots()))
	return bits + n*locatedBytes, bits + minList*locatedBytes
}

const locatedBytes = int64(unsafe.Sizeof(located{}))

func (t *Table) newMemory(bytes int64) (m *memory, err error) {
	m = &memory{broken: map[uint32]bool{}}
	if m.memory, err = offheap.Map(int(bytes)); err != nil {
		return nil, err
	}
	bits := int64(t.Outside.Rows()+63) / 64 * 8
	m.seen = offheap.Uint64s(m.memory[:bits])
	m.list = unsafe.Slice((*located)(unsafe.Pointer(unsafe.SliceData(m.memory[bits:]))), (bytes-bits)/locatedBytes)
	return m, nil
}

// parts divides the locations of all buckets into ascending ranges, each with at most as many
// buckets as the list can hold. For each range it fills the list, sorts it and calls fn with it.
// That takes two passes over the index per range, and some more to find the ranges.
func (m *memory) parts(t *Table, fn func(list []located) error) error {
	count := func(from, to bucketfile.Location) (n int) {
		for l := range Locations(t.Index) {
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
		if n > len(m.list) && from < to { // several buckets at one location are a fault, which two of them suffice to show
			mid := from + (to-from)/2
			if err := part(from, mid); err != nil {
				return err
			}
			return part(mid+1, to)
		}
		list := m.list[:0]
		for s := range t.Index.Slots() {
			if l := bucketfile.Location(t.Index.Location(s)); l != 0 && from <= l && l <= to && len(list) < len(m.list) {
				list = append(list, located{l, s})
			}
		}
		slices.SortFunc(list, func(a, b located) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.slot, b.slot)) })
		return fn(list)
	}
	first, last := ^bucketfile.Location(0), bucketfile.Location(0)
	for l := range Locations(t.Index) {
		first, last = min(first, l), max(last, l)
	}
	if last == 0 {
		return nil
	}
	return part(first, last)
}

// buckets verifies all buckets, in the order in which they lie on the devices, and returns the
// number of their rows.
func (t *Table) buckets(ctx context.Context, v *Report, m *memory) (rows int64, err error) {
	q := t.Files.NewQueue()
	requests := make([]bucketfile.Request, batch)
	submit := make([]*bucketfile.Request, 0, batch)
	var done []*bucketfile.Request
	var last located
	err = m.parts(t, func(all []located) error {
		for _, b := range all {
			if a := last.at; a != 0 && a.File() == b.at.File() && a.Offset()+int64(a.Units()) > b.at.Offset() {
				v.Found(Fault{
					File: t.Files.Path(b.at.File()), Offset: b.at.Offset() * int64(t.Files.Unit()), Slot: int64(b.slot),
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
			for len(submit) < min(batch, len(all)) && bytes <= t.ReadBytes/4 {
				i := len(submit)
				requests[i] = bucketfile.Request{Slot: all[i].slot, Location: all[i].at}
				bytes += int64(all[i].at.Units()) * int64(t.Files.Unit())
				submit = append(submit, &requests[i])
			}
			all = all[len(submit):]
			q.Submit(submit)
			v.Done.ReadBytes += bytes
			var failed error
			for q.Pending() > 0 {
				done = q.Wait(done[:0], 1)
				for _, r := range done {
					n, err := t.bucket(ctx, v, m, r)
					failed = errors.Join(failed, err)
					rows += n
					v.Done.Rows += n
				}
				q.Finish(done)
			}
			if failed != nil {
				return failed
			}
			v.Progress()
		}
		return nil
	})
	return rows, err
}

// bucket verifies the bucket that r has read and returns the number of its rows.
func (t *Table) bucket(ctx context.Context, v *Report, m *memory, r *bucketfile.Request) (rows int64, err error) {
	v.Done.Buckets++
	if r.Err != nil {
		m.broken[r.Slot] = true
		return 0, v.FoundError(ctx, apierr.Of(r.Err))
	}
	wrong := func(format string, args ...any) {
		v.Found(Fault{
			File: t.Files.Path(r.Location.File()), Offset: r.Location.Offset() * int64(t.Files.Unit()),
			Slot: int64(r.Slot), Reason: fmt.Sprintf(format, args...),
		})
	}
	b := &r.Bucket
	n := b.Len()
	for i := range n {
		key := b.Key(i)
		h := t.Hash.Of(key)
		for j := range i { // a bucket has few rows
			if b.Key(j) == key {
				wrong("key %d occurs twice", key)
			}
		}
		if s := t.Index.Slot(h); s != r.Slot {
			wrong("key %d belongs to slot %d", key, s)
		}
		if !t.Index.MayContain(r.Slot, h) {
			wrong("the filter does not have key %d", key)
		}
		if !layout.Trained(b.Row(i)) {
			wrong("key %d has a row that was never trained", key)
		}
		if at, ok := t.Outside.Find(h); ok {
			m.seen[at/64] |= 1 << (at % 64)
		}
	}
	return int64(n), nil
}

// outside verifies, for each row outside of buckets, that its bucket has the key if and only if the
// file says so. It skips rows whose bucket could not be read.
func (t *Table) outside(ctx context.Context, v *Report, m *memory) error {
	return t.Outside.Each(ctx, t.Checkpoints, func(file int, r *deltafile.Reader, rows int) error {
		for i := range rows {
			key, info, _ := r.Entry(i)
			at, ok := t.Outside.Current(file, r, i)
			if !ok {
				continue // a newer file has the key, or its bucket
			}
			slot := t.Index.Slot(t.Hash.Of(key))
			stored, have := info&1 != 0, m.seen[at/64]&(1<<(at%64)) != 0
			if stored == have || m.broken[slot] {
				continue
			}
			f := Fault{Offset: -1, Slot: int64(slot), Reason: fmt.Sprintf("the snapshot's delta file says that the bucket has a version of key %d, but the bucket lacks it", key)}
			if have {
				f.Reason = fmt.Sprintf("the snapshot's delta file says that no bucket has key %d, but the bucket has it", key)
			}
			if l := bucketfile.Location(t.Index.Location(slot)); l != 0 {
				f.File, f.Offset = t.Files.Path(l.File()), l.Offset()*int64(t.Files.Unit())
			}
			v.Found(f)
		}
		return nil
	})
}
