package hadoop

import (
	"cmp"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"
)

// nodes remembers which DataNodes failed or were too slow lately. All readers of a
// cluster share it and ask such a DataNode last, so that one that never answers costs
// a time-out once and not with every block.
type nodes struct {
	mu     sync.Mutex
	failed map[string]time.Time
}

// nodeMemory is how long a failure is remembered. After that, the DataNode is asked in
// its usual turn again, which costs hedgeAfter if it still fails.
const nodeMemory = 5 * time.Minute

func (n *nodes) recordFailure(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed == nil {
		n.failed = make(map[string]time.Time)
	}
	n.failed[node] = time.Now()
}

// clearFailure forgets the failure of a DataNode that has worked since.
func (n *nodes) clearFailure(node string) {
	n.mu.Lock()
	delete(n.failed, node)
	n.mu.Unlock()
}

// failedAt returns when a DataNode last failed, or the zero time if it did not fail lately.
func (n *nodes) failedAt(node string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.failed[node]
	if time.Since(at) > nodeMemory {
		delete(n.failed, node)
		return time.Time{}
	}
	return at
}

// order sorts the replicas: first those whose DataNodes have not failed, in the
// NameNode's order (the nearest first), then the others, with the oldest failure first.
func (n *nodes) order(replicas []replica) []replica {
	ordered := slices.Clone(replicas)
	slices.SortStableFunc(ordered, func(a, b replica) int {
		return cmp.Compare(unixNano(n.failedAt(a.node)), unixNano(n.failedAt(b.node)))
	})
	return ordered
}

// suspicion returns the earliest time, in Unix nanoseconds, at which one of a block's DataNodes
// failed: 0 if one of them has not failed lately, and the largest number if the block has no
// DataNode.
func (n *nodes) suspicion(b *block) int64 {
	least := int64(math.MaxInt64)
	for _, rep := range b.replicas {
		least = min(least, unixNano(n.failedAt(rep.node)))
	}
	return least
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// limitedLog writes at most one line for each subject within logEvery, and the next
// line says how many were left out. Otherwise sixteen readers might log the same
// DataNode at every block.
type limitedLog struct {
	log *slog.Logger
	mu  sync.Mutex
	at  map[string]*logged
}

type logged struct {
	last    time.Time
	leftOut int
}

const (
	logEvery = 10 * time.Second
	// maxSubjects bounds the memory: when it is exceeded, all subjects are forgotten.
	maxSubjects = 1000
)

func (l *limitedLog) warn(subject, msg string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil || len(l.at) > maxSubjects {
		l.at = make(map[string]*logged)
	}
	e := l.at[subject]
	if e == nil {
		e = &logged{}
		l.at[subject] = e
	}
	if time.Since(e.last) < logEvery {
		e.leftOut++
		return
	}
	if e.leftOut > 0 {
		args = append(args, "left_out", e.leftOut)
	}
	e.last, e.leftOut = time.Now(), 0
	l.log.Warn(msg, args...)
}
