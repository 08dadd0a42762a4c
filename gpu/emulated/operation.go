package emulated

import (
	"fmt"
	"hash/maphash"

	"aibox/gpu"
	"aibox/internal/panics"
)

// work is what an operation does, wherever it is enqueued.
type work struct {
	what string
	uses []gpu.Arg    // regions
	run  func() error // nil: nothing
}

// modeOf is how an operation uses a region.
func modeOf(u gpu.Arg) mode {
	return [...]mode{gpu.ReadArg: read, gpu.WriteArg: write, gpu.UpdateArg: update}[u.Kind]
}

// operation is work in one stream, or at once in several of them.
type operation struct {
	work
	devices []*device    // of its streams
	after   []*operation // those that must have run before
	held    []held
	fault   gpu.Kind // that it will fail with; 0: none
	ran     bool
	at      int64 // when it ran
}

// held is pinned memory that must not change until an operation runs: it was read, or it is
// going to be written and holds poison.
type held struct {
	region gpu.Region
	poison bool
	hash   uint64
}

var hashSeed = maphash.MakeSeed()

func hashOf(r gpu.Region) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	rows(r, bare(r.Memory).data, func(row []byte, _ int) { _, _ = h.Write(row) })
	return h.Sum64()
}

func (h *held) changed() bool {
	if !h.poison {
		return hashOf(h.region) != h.hash
	}
	clean := true
	rows(h.region, bare(h.region.Memory).data, func(row []byte, place int) { clean = clean && notPoison(row, place) < 0 })
	return !clean
}

// enqueue puts work at the end of streams. It also comes after the operations in after, whose clocks
// the streams have joined.
func (p *Platform) enqueue(streams []*stream, w work, after ...*operation) (*operation, error) {
	for _, u := range w.uses {
		if m := bare(u.Region.Memory); m.freed {
			return nil, gpu.Invalid("%v was freed", m)
		}
	}
	p.operations++
	op := &operation{work: w, fault: p.faults.next(), after: after}
	var all clock
	all.join(p.host)
	for _, s := range streams {
		op.what += fmt.Sprintf(" in stream %q of device %d", s.name, s.dev.number)
		op.devices = append(op.devices, s.dev)
		all.join(s.clock)
		op.after = append(op.after, s.last...)
	}
	op.what += fmt.Sprintf(" (operation %d)", p.operations)
	for _, s := range streams {
		all.tick(s.agent)
	}
	for _, u := range w.uses {
		op.hold(u, p.host)
	}
	// All streams have done what the operation does: its accesses may be any one's.
	a := &access{streams[0].agent, all[streams[0].agent], op.what}
	for _, u := range w.uses {
		if err := p.use(u.Region, modeOf(u), a, all); err != nil {
			return nil, err
		}
	}
	for _, s := range streams {
		s.clock, s.last = all.clone(), []*operation{op}
	}
	p.pending.add(op)
	return op, nil
}

// hold prepares a check that the host does not use pinned memory until op runs, if only the host
// could.
func (op *operation) hold(u gpu.Arg, host clock) {
	m := bare(u.Region.Memory)
	switch how := modeOf(u); {
	case !m.pinned:
	case how == read && m.shadow.quiet(u.Region, write, host):
		op.held = append(op.held, held{region: u.Region, hash: hashOf(u.Region)})
	case how == write && m.shadow.quiet(u.Region, update, host):
		rows(u.Region, m.data, fillPoison)
		op.held = append(op.held, held{region: u.Region, poison: true})
	}
}

// execute runs op.
func (p *Platform) execute(op *operation) {
	p.pending.remove(op)
	p.now++
	op.ran, op.at, op.after = true, p.now, nil
	for _, d := range op.devices {
		if d.broken != nil {
			op.spoil(d.broken)
			return
		}
	}
	if op.fault != 0 {
		op.spoil(op.devices[0].fail(op.fault, op.what, ""))
		return
	}
	for i := range op.held {
		if op.held[i].changed() {
			_ = p.report(&Hazard{Kind: Touched, Where: op.held[i].region.String(), Second: op.what})
			return
		}
	}
	if op.run == nil {
		return
	}
	switch err := panics.Do("the operation", op.run).(type) {
	case nil:
	case *Hazard:
		err.Second = op.what
		_ = p.report(err)
	default:
		op.spoil(op.devices[0].fail(gpu.LaunchFailed, op.what, err.Error()))
	}
}

// spoil records that op has not run because a device failed: the memory that it would have written
// is undefined, and devices that compute together with the broken one break, too.
func (op *operation) spoil(why *gpu.Error) {
	if op.run == nil {
		return
	}
	for _, u := range op.uses {
		if u.Writes() {
			rows(u.Region, bare(u.Region.Memory).data, fillPoison)
		}
	}
	for _, d := range op.devices {
		if d.broken == nil {
			d.fail(gpu.LaunchFailed, op.what, "another device of the group failed").Cause = why
		}
	}
}
