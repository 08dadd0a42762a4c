package devicerows

import (
	"errors"
	"sync/atomic"
	"time"

	"aibox/gpu"
	"aibox/trainer/engine"
)

// passes is the passes whose rows are on the devices.
type passes struct {
	current *pass // nil: none
	before  *pass // whose last rows are being copied to the host; nil: none
	next    *pass // whose rows are being copied to the devices; nil: none was announced, or it has to wait
	memory  [3]pass
	plan    plan
	lists   []rowList    // scratch
	size    int64        // of the memory that they take, in bytes, after the last plan
	waited  atomic.Int64 // nanoseconds that Begin has taken
}

// unused returns memory for a pass.
func (s *passes) unused() *pass {
	for i := range s.memory {
		if p := &s.memory[i]; p != s.current && p != s.before && p != s.next {
			return p
		}
	}
	panic("devicerows: four passes at once")
}

// Begin makes the rows of a pass those of the current one.
func (r *Rows) Begin(of engine.Pass) error {
	began := time.Now()
	defer func() { r.waited.Add(int64(time.Since(began))) }()
	if err := r.bring(of); err != nil {
		return err
	}
	err := r.reserve(of.Batches)
	if errors.Is(err, gpu.OutOfMemory) { // beside the rows of two passes
		if err := r.MakeWay(); err != nil {
			return err
		}
		err = r.bring(of)
	}
	if err != nil {
		return err
	}
	r.next.Pass = of
	r.countKept(r.next)
	r.before, r.current, r.next = r.current, r.next, nil
	p := r.before
	switch {
	case p == nil:
	case p.changed:
		r.current.changed = true // the rows that have stayed are not on the host
		r.fetch(p, p.leaving)
	default:
		r.leave()
	}
	return nil
}

// bring completes the rows of the next pass on the devices. If it was not announced, or there is no
// room for it beside the one before, it is made the next one, and there is also room for its
// mini-batches.
func (r *Rows) bring(of engine.Pass) error {
	if _, err := r.finishBefore(true); err != nil {
		return err
	}
	if r.next != nil {
		if _, err := r.planNext(true); err != nil {
			return err
		}
	}
	if r.next == nil { // it was not announced, or there is no room for it beside the one before
		if err := r.makeNext(of); err != nil {
			return err
		}
		if _, err := r.planNext(true); err != nil {
			return err
		}
	}
	r.countLate()
	_, err := r.copyRows(false, true)
	return err
}

// makeNext makes a pass that was not announced the next one, with room for it alone. REQUIRES: the
// current one has ended.
func (r *Rows) makeNext(of engine.Pass) error {
	if err := r.settle(true); err != nil {
		return err
	}
	p := r.unused()
	p.reset(of)
	err := r.fitAlone(p)
	if errors.Is(err, gpu.OutOfMemory) { // what other passes have needed more makes way
		if err := r.freeRows(); err != nil {
			return err
		}
		err = r.fitAlone(p)
	}
	if err != nil {
		return err
	}
	p.room, r.next = true, p
	r.plan.begin(r.current, p)
	return nil
}

// Announce says which pass is the next one, whose rows are copied to the devices during the current
// one as far as they are not there. If there is no room for both, nothing happens.
func (r *Rows) Announce(of engine.Pass) error {
	r.next = r.unused()
	r.next.reset(of)
	r.plan.begin(r.current, r.next)
	return r.Progress()
}

// Announced reports whether a pass was announced, and there is room for it.
func (r *Rows) Announced() bool { return r.next != nil }

// Progress goes on with the copies of rows of the passes before and after the current one, as far
// as that can be done at once.
func (r *Rows) Progress() error {
	if done, err := r.finishBefore(false); !done || err != nil {
		return err
	}
	if r.next == nil {
		return nil
	}
	if done, err := r.planNext(false); !done || err != nil || r.next == nil {
		return err
	}
	_, err := r.copyRows(false, false)
	return err
}

// Copying reports whether Progress has still something to do.
func (r *Rows) Copying() bool {
	if r.before != nil {
		return true
	}
	if r.next == nil {
		return false
	}
	for _, p := range r.parts {
		if !r.next.planned || !p.bringing.isDone() {
			return true
		}
	}
	return false
}

// finishBefore goes on with the copies of rows of the pass before the current one, and tells
// whether all are on the host. With wait they are.
func (r *Rows) finishBefore(wait bool) (done bool, err error) {
	if r.before == nil {
		return true, nil
	}
	if done, err := r.copyRows(true, wait); !done || err != nil {
		return false, err
	}
	r.leave()
	return true, nil
}

// planNext completes the plan where the rows of the next pass go, and begins to bring those that
// come from the host. If there is no room for them, the pass is not announced any more.
func (r *Rows) planNext(wait bool) (done bool, err error) {
	p := r.next
	if p.planned {
		return true, nil
	}
	if !p.room {
		if p.room, err = r.fitBeside(p); err != nil {
			return false, err
		}
		if !p.room {
			r.forgetNext()
			return true, nil
		}
	}
	if done, err := r.plan.isDone(wait); !done || err != nil {
		return false, err
	}
	p.planned, r.size = true, r.bytes()
	for d, part := range r.parts {
		part.bringing.start(p, p.arriving[d])
	}
	return true, nil
}

// fetch begins to copy rows of a pass, listed by devices, to the host.
func (r *Rows) fetch(p *pass, lists []rowList) {
	for d, part := range r.parts {
		part.fetching.start(p, lists[d])
	}
}

// leave ends the pass before the current one, whose rows are on the host.
func (r *Rows) leave() {
	p := r.before
	r.before = nil
	for d, part := range r.parts {
		part.places.give(p.leaving[d].places)
	}
	p.HasEnded()
}

// End ends the current pass; trained reports whether rows of it were changed. Unless another pass was
// announced, they are on the host then.
func (r *Rows) End(trained bool) error {
	r.dropBatches()
	if r.current == nil {
		return nil
	}
	r.current.changed = r.current.changed || trained
	if r.next != nil {
		return nil
	}
	return r.settle(true)
}

// Settle copies all rows of passes that have ended to the host. REQUIRES: the current one has.
func (r *Rows) Settle() error { return r.settle(r.next == nil) }

// Withdraw forgets the announced pass. REQUIRES: the current one has ended.
func (r *Rows) Withdraw() error {
	if r.next == nil {
		return nil
	}
	r.forgetNext()
	return r.settle(true)
}

// settle copies all rows to the host. With all, they are not on the devices any more.
func (r *Rows) settle(all bool) error {
	if _, err := r.finishBefore(true); err != nil {
		return err
	}
	p := r.current
	if p == nil {
		return nil
	}
	if r.next != nil { // the plan needs the keys of both
		if _, err := r.planNext(true); err != nil {
			return err
		}
	}
	if p.changed {
		r.lists = listRows(r.lists, len(r.parts), p.at, nil)
		r.fetch(p, r.lists)
		if _, err := r.copyRows(true, true); err != nil {
			return err
		}
		p.changed = false
	}
	if all {
		r.forgetRows()
	}
	p.HasEnded()
	return nil
}

// Abort ends all passes after an error; nothing more is copied.
func (r *Rows) Abort() {
	r.dropBatches()
	r.forgetNext()
	for _, p := range r.parts {
		p.fetching.stop()
	}
	before, current := r.before, r.current
	r.before = nil
	r.forgetRows()
	for _, p := range []*pass{before, current} {
		if p != nil {
			p.HasEnded()
		}
	}
}

// forgetNext ends the use of the rows of the next pass.
func (r *Rows) forgetNext() {
	r.plan.stop()
	for _, p := range r.parts {
		p.bringing.stop()
	}
	r.next = nil
}

// forgetRows forgets what rows are on the devices.
func (r *Rows) forgetRows() {
	r.current = nil
	for _, p := range r.parts {
		p.places.clear()
	}
}

// bytes is the memory of the host that the passes take. REQUIRES: the worker does not plan.
func (s *passes) bytes() int64 {
	n := 4*int64(cap(s.plan.table)+cap(s.plan.missing)) + int64(cap(s.plan.shared))
	for i := range s.memory {
		n += s.memory[i].bytes()
	}
	for _, l := range s.lists {
		n += 4 * int64(cap(l.rows)+cap(l.places))
	}
	return n
}
