package flow

import (
	"log/slog"
	"sync/atomic"

	"aibox/reader"
	"aibox/sparsetable"
)

// Limit is the number of unique keys that a pass may have so that its rows fit the memory of the
// table and, if rows are there, of the devices. The table's limit is found when a pass does not
// fit, and stays as long as the table is open, unless other processes had taken the memory: then it
// is raised again (see fits). The model does not depend on how passes are divided.
type Limit struct {
	keys        atomic.Int64 // 0 if there is no limit so far
	told        atomic.Bool
	passing     shrunk
	Devices     func([]reader.Batch) int64 // returns the devices' limit for a pass with these mini-batches, which does not change while passes are cut; nil if there is none
	toldDevices atomic.Bool
}

// shrunk is the state of a limit that is below the table's budget because the process could not get
// as much memory. Only stage ST uses it.
type shrunk struct {
	whole int64 // unique keys of the pass that did not fit; 0 if the limit is not shrunk
	every int   // the limit is raised after this many passes that fit
	fit   int   // passes that fitted since the limit changed
}

// A limit is raised after leastFits passes that fit. Each time that a raised limit turns out too
// high, that number is doubled, up to mostFits.
const (
	leastFits = 16
	mostFits  = 1024
)

// cut divides pass into parts that do not exceed the limits.
func (l *Limit) cut(pass *reader.Pass, log *slog.Logger) []*reader.Pass {
	most := l.keys.Load()
	if l.Devices != nil {
		devices := l.Devices(pass.Batches)
		if most == 0 || devices < most {
			most = devices
		}
		if len(pass.Keys) > int(devices) && !l.toldDevices.Swap(true) {
			log.Info("the memory of the devices cannot hold the rows of a whole pass: passes are trained in parts, which does not change the model; a smaller pipeline.batches_per_pass or more engine.devices avoid that",
				"mini_batches", len(pass.Batches), "unique_keys", len(pass.Keys), "keys_that_fit", devices)
		}
	}
	if most > 0 && len(pass.Keys) > int(most) {
		return splitPass(pass, int(most))
	}
	return []*reader.Pass{pass}
}

// lower sets the limit after a pass did not fit.
func (l *Limit) lower(pass *reader.Pass, cause *sparsetable.BudgetError, log *slog.Logger) {
	keys := int64(min(cause.FitRows, len(pass.Keys)-1))
	if now := l.keys.Load(); now == 0 || keys < now {
		l.keys.Store(keys)
	}
	if x := &l.passing; cause.LackingBytes > 0 {
		*x = shrunk{whole: max(x.whole, int64(len(pass.Keys))), every: min(max(leastFits, 2*x.every), mostFits)}
	} else {
		*x = shrunk{}
	}
	if !l.told.Swap(true) {
		log.Info("the table's memory cannot hold the rows of a whole pass: passes are trained in parts, which does not change the model; a smaller pipeline.batches_per_pass or a larger sparse_table.memory_bytes avoids that",
			"mini_batches", len(pass.Batches), "unique_keys", len(pass.Keys), "keys_that_fit", keys)
	}
}

// fits records that the rows of a pass fitted. The missing memory may be available again, so now
// and then the limit is doubled. It is removed once it would reach the size of the pass that did
// not fit.
func (l *Limit) fits() {
	x := &l.passing
	if x.whole == 0 {
		return
	}
	if x.fit++; x.fit < x.every {
		return
	}
	x.fit = 0
	if keys := 2 * l.keys.Load(); keys < x.whole {
		l.keys.Store(keys)
	} else {
		l.keys.Store(0)
		x.whole = 0
	}
}

// splitPass divides a pass into passes of consecutive mini-batches. Each has at most the given
// number of unique keys, unless a single mini-batch has more. The parts share the examples of p.
// Only the last part ends where p ends, and has p's cursor.
func splitPass(p *reader.Pass, keys int) []*reader.Pass {
	var parts []*reader.Pass
	part := new(reader.Pass)
	at := make([]int32, len(p.Keys))   // index of a key in its part
	seen := make([]int32, len(p.Keys)) // number of the last part that has it, from 1 on
	number := int32(1)
	for _, b := range p.Batches {
		fresh := 0
		for _, r := range b.Rows {
			if seen[r] != number {
				fresh++
			}
		}
		if len(part.Batches) > 0 && len(part.Keys)+fresh > keys {
			parts = append(parts, part)
			part = new(reader.Pass)
			number++
		}
		rows := make([]int32, len(b.Rows))
		for i, r := range b.Rows {
			if seen[r] != number {
				seen[r], at[r] = number, int32(len(part.Keys))
				part.Keys = append(part.Keys, p.Keys[r])
			}
			rows[i] = at[r]
		}
		b.Rows = rows
		part.Seq, part.Bytes = p.Seq, p.Bytes
		part.Batches = append(part.Batches, b)
	}
	part.End = p.End
	return append(parts, part)
}
