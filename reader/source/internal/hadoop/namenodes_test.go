package hadoop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aibox/reader/source/internal/fsys"
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

// refusing is an address at which nobody listens, and nobody can until the test ends.
func refusing(t *testing.T) string {
	t.Helper()
	taken, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(taken) })
	if err := unix.Bind(taken, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(taken)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
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
		s, log := hdfsSources(t, Options{ConfDir: tc.conf, User: "alice", TimeoutMs: 1000, RetryMs: NoRetry})
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{tc.uri})
		wantError(t, err, fsys.ErrUnavailable, atOnce, begin, tc.words...)
		until(t, "the connections are counted", func() bool { return asked.Load() > 0 && (name != "pair" || askedOther.Load() > 0) })
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
	s, log := hdfsSources(t, Options{User: "alice", TimeoutMs: 60_000, RetryMs: int(retry.Milliseconds())})
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{"hdfs://" + refusing(t) + "/x"})
	wantError(t, err, fsys.ErrUnavailable, atOnce, begin, "connection refused", "attempts")
	if d := time.Since(begin); d < retry {
		t.Errorf("given up after %v", d)
	}
	if !strings.Contains(log.String(), "trying again") {
		t.Error("the retries were not logged")
	}

	hole, asked := blackHole(t)
	s, _ = hdfsSources(t, Options{User: "alice", TimeoutMs: 1000, RetryMs: 900})
	begin = time.Now()
	_, err = s.Expand(context.Background(), []string{"hdfs://" + hole + "/x"})
	wantError(t, err, fsys.ErrUnavailable, atOnce, begin, hole)
	until(t, "the connection is counted", func() bool { return asked.Load() > 0 })
	if n := asked.Load(); n != 1 {
		t.Errorf("the black hole was asked %d times", n)
	}
}

// NameNodes that were silent are asked last, and the one that was silent last after the
// others.
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
	n.failed(0, context.DeadlineExceeded)
	want(2, 1, 0)
	n.failed(1, context.DeadlineExceeded)
	want(2, 0, 1)
	n.mu.silent[1].at = time.Now().Add(-silentFor)
	want(1, 2, 0)
}

// A retry leaves out a NameNode that was silent since the operation failed, while the
// other one is on standby or when the time is over, and no other NameNode.
func TestNameNodeSpared(t *testing.T) {
	c, err := New("pair", &Options{ConfDir: pairConf(t, refusing(t), refusing(t)), User: "alice", TimeoutMs: 60_000},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	silent := errors.New("silent")
	const second, minute, never = time.Second, time.Minute, 1000 * time.Hour
	for i, tc := range []struct {
		silence, failing time.Duration // so long ago
		retry            time.Duration
		standby, spared  bool
	}{
		{second, 0, 0, true, false},                   // the first attempt
		{minute, 30 * minute, time.Hour, true, false}, // too long ago
		{5 * second, 10 * second, time.Hour, false, false},
		{5 * second, 10 * second, time.Hour, true, true},
		{10 * second, 5 * second, time.Hour, true, false}, // it was silent in an earlier operation
		{5 * second, 10 * second, 0, false, true},
		{5 * second, 10 * second, 0, true, true},
		{10 * second, 5 * second, 0, false, false}, // as before
		{never, minute, 0, false, false},
	} {
		now := time.Now()
		c.retry = tc.retry
		var failing time.Time
		if tc.failing > 0 {
			failing = now.Add(-tc.failing)
		}
		c.nameNodes.mu.silent[0] = silence{now.Add(-tc.silence), silent}
		if err := c.skipped(0, failing, tc.standby); (err == silent) != tc.spared {
			t.Errorf("%d: %+v: %v", i, tc, err)
		}
		if c.nameNodes.mu.silent[1] = (silence{}); tc.standby { // which a NameNode that refuses is not
			continue
		}
		_, err := c.newSession(context.Background(), failing)
		if errors.Is(err, silent) != tc.spared || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%d: %+v: %v", i, tc, err)
		}
	}
	// It answered slowly in this operation, but the time limit has passed since then.
	c.timeout, c.retry = second, time.Hour
	now := time.Now()
	c.nameNodes.mu.silent[0] = silence{now.Add(-5 * second), silent}
	if err := c.skipped(0, now.Add(-61*minute), true); err != nil {
		t.Error("a NameNode was not asked again at the end:", err)
	}
	if err := c.skipped(0, now.Add(-6*second), true); err != silent {
		t.Error("a NameNode was asked again while another one may become active")
	}
}
