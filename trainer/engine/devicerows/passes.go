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
	before  *pass // its last rows are being copied to the host; nil: none
	next    *pass // its rows are being copied to the devices; nil: none was announced, or it does not fit
	memory  [3]pass
	plan    plan
	lists   []rowList    // scratch
	size    int64        // host memory of all this in bytes, as of the last plan
	waited  atomic.Int64 // total nanoseconds in Begin
}

// unused returns an element of memory that no pass uses.
func (s *passes) unused() *pass {
	for i := range s.memory {
		if p := &s.memory[i]; p != s.current && p != s.before && p != s.next {
			return p
		}
	}
	panic("devicerows: four passes at once")
}

// Begin makes a pass the current one, with all its rows on the devices.
func (r *Rows) Begin(of engine.Pass) error {
	began := time.Now()
	defer func() { r.waited.Add(int64(time.Since(began))) }()
	if err := r.bring(of); err != nil {
		return err
	}
	err := r.reserve(of.Batches)
	if errors.Is(err, gpu.OutOfMemory) { // retry without the rows of the previous pass
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
		r.current.changed = true // rows that have stayed are newer than those of the host
		r.fetch(p, p.leaving)
	default:
		r.leave()
	}
	return nil
}

// bring makes a pass the next one, unless it was announced, and waits until its rows are on the
// devices. If the pass was not announced, or does not fit beside the one before, bring also
// reserves memory for its mini-batches.
func (r *Rows) bring(of engine.Pass) error {
	if _, err := r.finishBefore(true); err != nil {
		return err
	}
	if r.next != nil {
		if _, err := r.planNext(true); err != nil {
			return err
		}
	}
	if r.next == nil { // not announced, or no room beside the one before
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

// makeNext makes a pass the next one, after all other rows have left the devices. REQUIRES: the
// current pass has ended.
func (r *Rows) makeNext(of engine.Pass) error {
	if err := r.copyToHost(true); err != nil {
		return err
	}
	p := r.unused()
	p.reset(of)
	err := r.fitAlone(p)
	if errors.Is(err, gpu.OutOfMemory) { // retry after freeing what earlier passes had needed
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

// Announce says which pass is the next one. During the current one, its rows that are not yet on
// the devices are copied there. If both passes do not fit, Announce has no effect.
func (r *Rows) Announce(of engine.Pass) error {
	r.next = r.unused()
	r.next.reset(of)
	r.plan.begin(r.current, r.next)
	return r.Progress()
}

// Announced reports whether a pass was announced and, as far as is known, fits.
func (r *Rows) Announced() bool { return r.next != nil }

// Progress continues copying rows of the passes before and after the current one, as far as that is
// possible without waiting.
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

// Copying reports whether Progress still has something to do.
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

// finishBefore continues copying rows of the pass before the current one, and reports whether all
// are on the host; with wait it waits until they are.
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

// planNext completes the plan for the rows of the next pass, and starts copying those that come
// from the host. If there is no room for them, it withdraws the pass. done is false if the plan
// needs more time; with wait it is true.
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

// fetch starts copying rows of a pass, listed by device, to the host.
func (r *Rows) fetch(p *pass, lists []rowList) {
	for d, part := range r.parts {
		part.fetching.start(p, lists[d])
	}
}

// leave ends the pass before the current one. REQUIRES: its rows are on the host.
func (r *Rows) leave() {
	p := r.before
	r.before = nil
	for d, part := range r.parts {
		part.places.give(p.leaving[d].places)
	}
	p.HasEnded()
}

// End ends the current pass; trained says whether the pass has changed rows. Unless another pass
// was announced, all rows are on the host afterwards.
func (r *Rows) End(trained bool) error {
	r.dropBatches()
	if r.current == nil {
		return nil
	}
	r.current.changed = r.current.changed || trained
	if r.next != nil {
		return nil
	}
	return r.copyToHost(true)
}

// CopyToHost copies all rows to the host. They stay on the devices if another pass was announced.
// REQUIRES: the current pass has ended.
func (r *Rows) CopyToHost() error { return r.copyToHost(r.next == nil) }

// Withdraw forgets the announced pass. REQUIRES: the current one has ended.
func (r *Rows) Withdraw() error {
	if r.next == nil {
		return nil
	}
	r.forgetNext()
	return r.copyToHost(true)
}

// settle copies all rows to the host. With all, it also removes them from the devices.
func (r *Rows) copyToHost(all bool) error {
	if _, err := r.finishBefore(true); err != nil {
		return err
	}
	p := r.current
	if p == nil {
		return nil
	}
	if r.next != nil { // the plan needs the keys of p, which HasEnded gives up
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

// Abort ends all passes after an error, without copying any more rows.
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

// forgetNext stops all work on the next pass and drops it.
func (r *Rows) forgetNext() {
	r.plan.stop()
	for _, p := range r.parts {
		p.bringing.stop()
	}
	r.next = nil
}

// forgetRows drops the rows on the devices.
func (r *Rows) forgetRows() {
	r.current = nil
	for _, p := range r.parts {
		p.places.clear()
	}
}

// bytes is the host memory that the passes use. REQUIRES: the worker does not plan.
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
