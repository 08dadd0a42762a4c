package trainer

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"aibox/configs"
	"aibox/internal/hdfstest"
	"aibox/trainer/report"
)

// away is a real HDFS cluster parts of which fail in the middle of an object. A job with a table on
// SSD has its snapshots there.
type away struct {
	*hdfstest.Cluster
	want outcomeOf // of the job, where it is left alone
}

// objectBytes is less than the size of most objects with bucket files of the job.
const objectBytes = 400_000

// manifestBytes is more than the size of a manifest of the job's snapshots.
const manifestBytes = 50_000

// patient makes a job wait for HDFS.
var patient = []string{"data.hdfs.timeout_ms=60000", "data.hdfs.retry_ms=600000"}

// oneAtATime is held by the test that uses the cluster in which parts of HDFS fail, since the part
// that fails, and the stream at which it does, belong to one test.
var oneAtATime sync.Mutex

// proxied returns the cluster in which parts of HDFS fail. The test has it for itself until it
// ends.
func proxied(t *testing.T) *hdfstest.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIP: starts a cluster; not in short mode")
	}
	oneAtATime.Lock()
	t.Cleanup(oneAtATime.Unlock)
	return hdfstest.Shared(t, "proxied", hdfstest.Config{DataNodes: 2, Separate: true, Proxied: true})
}

func newAway(t *testing.T) *away {
	t.Helper()
	a := &away{Cluster: proxied(t)}
	left := withBuckets(t)
	a.want = outcome(t, left, train(t, left))
	return a
}

// job makes the job, every fourth snapshot of which goes to a directory of HDFS.
func (a *away) job(t *testing.T, dir string, set ...string) *configs.Job {
	t.Helper()
	return withBuckets(t, slices.Concat([]string{"sparse_table.dirs=[MODEL-a, MODEL-b]", "snapshots={every: 1 pass, remote_every: 4 snapshots}", "snapshots.remote=" + a.URI(dir)}, patient, set)...)
}

// whole fails the test unless the job, whose machine was lost, has made the model and the reports
// of a job without interruption, all files of its table have arrived, and nothing of its snapshots
// is left.
func (a *away) whole(t *testing.T, j *configs.Job, s *report.Summary, dir string) {
	t.Helper()
	got := outcome(t, j, s)
	got.compare(t, &a.want)
	if len(s.Resumed) == 0 {
		t.Error("it has not gone on from a snapshot")
	}
	if r := s.Arrival; r == nil || r.Remote != j.Snapshots.Remote || r.FetchedBytes == 0 || r.WholeSeconds == 0 || records(t, append(j.SparseTable.Dirs, j.Output.ModelDir)...) > 0 {
		t.Errorf("not all has arrived: %+v", r)
	}
	for _, sub := range []string{"snapshots", "objects", "pending"} {
		left := a.List(t, dir+"/"+sub)
		if sub == "pending" {
			// A manifest whose upload has ended before it was whole: where its creation was still
			// on its way, it may have come behind its removal. A later upload removes it.
			left = slices.DeleteFunc(left, func(name string) bool { return strings.HasSuffix(name, ".aibox.tmp") })
		}
		if len(left) > 0 {
			t.Errorf("left over in %s: %q", sub, left)
		}
	}
}

// outage is a failure of a part of HDFS in the middle of a stream.
type outage struct {
	down, back chan struct{} // closed when it has failed, and when it is there again

	mu  sync.Mutex
	end func() // has it come back, if it is down; with mu
}

// happened reports whether the part of HDFS has failed.
func (o *outage) happened() bool {
	select {
	case <-o.down:
		return true
	default:
		return false
	}
}

// over restarts the part of HDFS if it has failed.
func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		o.end()
		close(o.back)
	}
	o.end = nil
}

// fails makes a part of HDFS fail when a connection to a DataNode has carried that many bytes. It
// works again at the latest when the test ends.
func (a *away) fails(t *testing.T, way hdfstest.Way, bytes int64, fail, repair func(node int)) *outage {
	t.Helper()
	o := &outage{down: make(chan struct{}), back: make(chan struct{})}
	t.Cleanup(o.over)
	a.At(t, way, bytes, func(node int) {
		o.mu.Lock()
		defer o.mu.Unlock()
		fail(node)
		o.end = func() {
			repair(node)
			a.WaitDataNodes(t, 2)
		}
		close(o.down)
	})
	return o
}

// dataNodeDies kills the DataNode to which the connection leads.
func (a *away) dataNodeDies(t *testing.T, way hdfstest.Way, bytes int64) *outage {
	t.Helper()
	return a.fails(t, way, bytes, func(node int) { a.KillDataNode(t, node) }, func(node int) { a.StartDataNode(t, node) })
}

// nameNodeStops stops the NameNode.
func (a *away) nameNodeStops(t *testing.T, way hdfstest.Way, bytes int64) *outage {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	return a.fails(t, way, bytes, func(int) { check(a.TryStopNameNode()) }, func(int) { check(a.TryStartNameNode()) })
}

// heard returns a log that calls a function before each message that begins with a text.
func heard(text string, do func()) *slog.Logger {
	return slog.New(onMessage{quiet.Logger.Handler(), text, do})
}

// everySnapshot makes the job upload every snapshot to HDFS.
const everySnapshot = "snapshots.remote_every=1 snapshot"

// triesAgain is what the client of HDFS logs when it waits.
const triesAgain = "HDFS: trying again"
