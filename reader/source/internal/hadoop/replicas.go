package hadoop

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// connect opens a stream at r.offset, unless there is one, to the first replica
// that has not failed.
func (r *reader) connect() (err error) {
	if r.s != nil {
		return nil
	}
	left := r.untried()
	if len(left) == 0 && !r.spare {
		left = r.reconsider()
	}
	unchecked := false
	if len(left) == 0 && r.c.allowUnchecked && !r.spare {
		for _, fault := range r.faults {
			if fault.kind == unverified {
				left, unchecked = append(left, fault.rep), true
			}
		}
	}
	if len(left) == 0 {
		return &blockError{b: r.b, offset: r.offset, faults: r.faults}
	}
	patience := r.c.timeout
	if r.spare || len(left) > 1 && !r.patient && r.c.nodes.failedAt(left[1].node).IsZero() {
		patience = r.c.hedgeAfter() // another replica can be tried
	}
	if r.s, err = r.c.openBlock(r.ctx, r.b, left[0], r.offset-r.b.start, patience, unchecked); err != nil {
		if unchecked { // it has failed before, so its failure is not recorded again
			return &blockError{b: r.b, offset: r.offset, faults: r.faults}
		}
		return r.markEarlyTimeout(err, patience)
	}
	if r.s.table == nil {
		r.c.warnings.warn(r.b.name, "HDFS: no replica of a block has checksums; its bytes are used unverified",
			"uri", r.f.URI, "block", r.b.name, "offset", r.offset, "datanode", left[0].node)
	}
	return nil
}

// untried lists the replicas of r.b that have not failed, with the best one first.
func (r *reader) untried() []replica {
	var left []replica
next:
	for _, rep := range r.c.nodes.order(r.b.replicas) {
		for _, fault := range r.faults {
			if fault.rep == rep {
				continue next
			}
		}
		left = append(left, rep)
	}
	return left
}

// markEarlyTimeout marks a replica's error as earlyTimeout if it only shows that the DataNode did not answer within
// patience, and patience was less than the time limit.
func (r *reader) markEarlyTimeout(err error, patience time.Duration) error {
	if fault, one := err.(*replicaError); one {
		fault.earlyTimeout = fault.kind == unreachable && patience < r.c.timeout && isTimeout(fault.err)
	}
	return err
}

// reconsider lists the replicas that were given up before their time limit. They are tried once
// more, with the whole time limit, since the others turned out to be worse.
func (r *reader) reconsider() []replica {
	n := len(r.faults)
	if !r.patient {
		r.faults = slices.DeleteFunc(r.faults, func(f *replicaError) bool { return f.earlyTimeout })
	}
	if len(r.faults) == n {
		return nil
	}
	r.patient = true
	return r.untried()
}

// hedgeAfter returns how long a DataNode may be silent or too slow before another one, if there is
// one, is asked.
func (c *Cluster) hedgeAfter() time.Duration { return min(2*time.Second, c.timeout/2) }

// await waits for bytes of r.s. If the DataNode is too slow, it looks for another one. A DataNode
// that does not send a packet within the time limit (hedgeAfter for a spare block) has failed.
func (r *reader) await() error {
	window, patience := r.c.hedgeAfter(), r.c.timeout
	if r.spare {
		patience = window
	}
	for left := patience; ; left -= window {
		if r.s.tooSlow(window) {
			if r.hedge(window) {
				return nil
			}
			if r.spare {
				return r.markEarlyTimeout(r.s.fault(unreachable, fmt.Errorf("it is very slow: %w", os.ErrDeadlineExceeded)), patience)
			}
		}
		err := r.s.next(min(window, left))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if left <= window {
			return r.markEarlyTimeout(r.s.fault(unreachable, fmt.Errorf("no packet came within %v: %w", patience, err)), patience)
		}
	}
}

// hedge looks for a replica that sends bytes within the window, and reads on from that
// one. The current stream is kept until then.
func (r *reader) hedge(window time.Duration) bool {
	slow := r.s
	for _, rep := range r.untried() {
		if rep == slow.rep || !r.c.nodes.failedAt(rep.node).IsZero() {
			continue
		}
		s, err := r.c.openBlock(r.ctx, r.b, rep, r.offset-r.b.start, window, false)
		if err == nil {
			if err = s.next(window); err == nil {
				r.c.nodes.recordFailure(slow.rep.node)
				r.c.warnings.warn("slow "+slow.rep.node, "HDFS: a DataNode is very slow; another one is used", "datanode", slow.rep.node,
					"instead", rep.node, "uri", r.f.URI, "block", r.b.name, "offset", r.offset)
				slow.close()
				r.s = s
				return true
			}
			s.close()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = s.fault(unreachable, err)
			}
		}
		fault, one := r.markEarlyTimeout(err, window).(*replicaError)
		if !one {
			return false // the context has ended, so the stream will fail as well
		}
		if fault.kind == brokenOff {
			fault.kind = unreachable // the DataNode is not dialed once more, so the replica may be good
		}
		r.recordFault(fault)
	}
	if !r.spare {
		r.c.warnings.warn("slow "+slow.rep.node, "HDFS: a DataNode is very slow, and no better one has the block", "datanode", slow.rep.node,
			"uri", r.f.URI, "block", r.b.name, "offset", r.offset)
	}
	return false
}

// rejectReplica closes the stream because of a fault of its replica. The replica is not used
// again for this block, unless the connection is to be dialed once more.
func (r *reader) rejectReplica(fault *replicaError) {
	r.hangUp()
	if node := fault.rep.node; fault.kind == brokenOff && (r.redialed.node != node || r.redialed.offset != r.offset) {
		r.redialed.node, r.redialed.offset = node, r.offset
		return
	}
	r.recordFault(fault)
}

// recordFault records the fault of a replica, unless the end of the context closed the stream,
// which says nothing about the DataNode.
func (r *reader) recordFault(fault *replicaError) {
	if r.ctx.Err() != nil {
		return
	}
	r.faults = append(r.faults, fault)
	msg, subject := "HDFS: a replica is bad; another one is used if there is one", r.b.name+fault.rep.node
	switch fault.kind {
	case unreachable, stale:
		msg, subject = "HDFS: a DataNode failed", fault.rep.node
		r.c.nodes.recordFailure(fault.rep.node)
		if fault.kind == stale {
			r.c.keys.forget()
		}
	case refused:
		msg = "HDFS: a DataNode refused a replica"
	}
	r.c.warnings.warn(subject, msg, "datanode", fault.rep.node, "error", fault.err,
		"uri", r.f.URI, "block", r.b.name, "offset", r.offset)
}

// reportBad tells the NameNode of bad replicas, after another replica was good. (If
// none is good, the fault may be ours.) If the report fails, the next reader reports
// them.
func (r *reader) reportBad() {
	for _, fault := range r.faults {
		if fault.reported || fault.kind < brokenOff {
			continue
		}
		fault.reported = true
		rr := retrier{c: r.c, op: "report", path: r.blocks.path}
		err := r.c.once(r.ctx, &rr, func(s *session) error { return s.reportBadBlocks(r.b, fault.rep) })
		if err != nil {
			r.c.log.Debug("HDFS: reporting a bad replica failed", "datanode", fault.rep.node, "block", r.b.name, "error", err)
		}
	}
}
