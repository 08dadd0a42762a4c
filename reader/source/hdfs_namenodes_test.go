package source

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// blackHole is an address that takes connections and never answers. It counts
// them.
func blackHole(t *testing.T) (address string, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	connections = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String(), connections
}

// refusing is an address at which nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// pairConf is a configuration directory with the name service "pair".
func pairConf(t *testing.T, first, second string) string {
	t.Helper()
	return confFiles(t, "dfs.nameservices", "pair", "dfs.ha.namenodes.pair", "nn1,nn2",
		"dfs.namenode.rpc-address.pair.nn1", first, "dfs.namenode.rpc-address.pair.nn2", second)
}

// Without retries each NameNode is asked once, one that swallows everything too.
func TestNoRetry(t *testing.T) {
	hole, asked := blackHole(t)
	other, askedOther := blackHole(t)
	for name, tc := range map[string]struct {
		conf, uri string
		words     []string
	}{
		"one":          {"", "hdfs://" + hole + "/x", []string{hole, "timeout"}},
		"pair":         {pairConf(t, hole, other), "hdfs://pair/x", []string{hole, other, "timeout"}},
		"hole refused": {pairConf(t, hole, refusing(t)), "hdfs://pair/x", []string{hole, "timeout", "connection refused"}},
	} {
		asked.Store(0)
		askedOther.Store(0)
		s, log := hdfsSources(t, HDFSOptions{ConfDir: tc.conf, User: "alice", TimeoutMs: 300, RetryMs: NoRetry})
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{tc.uri})
		wantError(t, err, ErrUnavailable, atOnce, begin, tc.words...)
		if n, m := asked.Load(), askedOther.Load(); n != 1 || m > 1 || (name == "pair") != (m == 1) {
			t.Errorf("%s: the black holes were asked %d and %d times", name, n, m)
		}
		if strings.Contains(log.String(), "trying again") {
			t.Errorf("%s: it was tried again:\n%s", name, log)
		}
	}
}

// The time for retries holds from the first contact on, and the time in which a
// black hole did not answer is part of it.
func TestFirstContactRetries(t *testing.T) {
	t.Parallel()
	const retry = 7 * time.Second // more than the 5 s of before
	s, log := hdfsSources(t, HDFSOptions{User: "alice", TimeoutMs: 300, RetryMs: int(retry.Milliseconds())})
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{"hdfs://" + refusing(t) + "/x"})
	wantError(t, err, ErrUnavailable, atOnce, begin, "connection refused", "attempts")
	if d := time.Since(begin); d < retry {
		t.Errorf("given up after %v", d)
	}
	if !strings.Contains(log.String(), "trying again") {
		t.Error("the retries were not logged")
	}

	hole, asked := blackHole(t)
	s, _ = hdfsSources(t, HDFSOptions{User: "alice", TimeoutMs: 1000, RetryMs: 900})
	begin = time.Now()
	_, err = s.Expand(context.Background(), []string{"hdfs://" + hole + "/x"})
	wantError(t, err, ErrUnavailable, atOnce, begin, hole)
	if n := asked.Load(); n != 1 {
		t.Errorf("the black hole was asked %d times", n)
	}
}

// A NameNode that was silent is asked last, and in a retry not at all while the
// other one is on standby or when the time is over.
func TestNameNodeOrder(t *testing.T) {
	var n nameNodes
	n.init([]string{"a", "b", "c"})
	want := func(order ...int) {
		t.Helper()
		if got := n.order(); fmt.Sprint(got) != fmt.Sprint(order) {
			t.Errorf("order %v, want %v", got, order)
		}
	}
	want(0, 1, 2)
	if !n.answered(1) || n.answered(1) {
		t.Error("answered tells wrongly whether the NameNode is another one")
	}
	want(1, 2, 0)
	n.failed(1, &net.DNSError{})
	want(1, 2, 0)
	n.failed(1, context.DeadlineExceeded)
	want(2, 0, 1)
	n.mu.silent[1].at = time.Now().Add(-silentFor)
	want(1, 2, 0)

	hole, asked := blackHole(t)
	c, err := newCluster(hole, &HDFSOptions{User: "alice", TimeoutMs: 200}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var silent time.Time
	for i, tc := range []struct {
		retrying bool
		until    time.Time
		asked    int32
	}{
		{false, time.Time{}, 1},
		{true, time.Now(), 1}, // over: the error is known
		{true, time.Now().Add(time.Hour), 2},
		{false, time.Time{}, 3}, // another operation
	} {
		if _, err := c.newSession(context.Background(), tc.retrying, tc.until); err == nil || !isTimeout(err) {
			t.Errorf("%d: %v", i, err)
		}
		if n := asked.Load(); n != tc.asked {
			t.Errorf("%d: asked %d times, want %d", i, n, tc.asked)
		}
		if at := c.nameNodes.mu.silent[0].at; i == 1 && !at.Equal(silent) {
			t.Error("a NameNode that was not asked counts as silent once more")
		} else {
			silent = at
		}
	}
}
