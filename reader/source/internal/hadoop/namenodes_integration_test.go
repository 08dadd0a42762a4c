package hadoop

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/internal/hdfstest"
	"aibox/reader/source/internal/fsys"
)

// TestHDFSNameNodes hangs, kills and restarts NameNodes that are processes of
// their own.
func TestHDFSNameNodes(t *testing.T) {
	t.Parallel()
	c := hdfstest.Start(t, hdfstest.Config{DataNodes: 1, Separate: true, HA: true, SeparateNameNodes: true})
	text := logText(1000)
	c.PutBytes(t, text, "/a", hdfstest.PutOptions{})
	uri := c.URI("/a")
	const timeoutMs = 15_000 // after which a NameNode counts as hung
	sources := func(retryMs int) (*testSources, *testLog) {
		return hdfsSources(t, Options{ConfDir: c.ConfDir(), TimeoutMs: timeoutMs, RetryMs: retryMs})
	}
	read := func(s *testSources) error {
		files, err := s.Expand(context.Background(), []string{uri})
		if err != nil {
			return err
		}
		got, err := readRange(context.Background(), s, files[0], 0)
		if err == nil && got != string(text) {
			err = errors.New("bytes differ")
		}
		return err
	}
	// The NameNode listed first hangs; the other one serves.
	c.Failover(t, 0, 1)
	c.HangNameNode(t, 0)
	s, log := sources(0)
	never, _ := sources(NoRetry)
	var wg sync.WaitGroup
	for _, s := range []*testSources{s, never} {
		wg.Go(func() {
			for range 3 {
				if err := read(s); err != nil {
					t.Error(err)
				}
				reconnect(s)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(log.String(), "another NameNode is used"); n != 1 {
		t.Errorf("the change of the NameNode was logged %d times:\n%s", n, log)
	}
	if strings.Contains(log.String(), "trying again") {
		t.Errorf("the other NameNode was not asked at once:\n%s", log)
	}

	// The active one hangs while its sessions are idle, and in mid-job. The other one,
	// which hung until then, becomes active.
	for _, s := range []*testSources{s, never} {
		if err := read(s); err != nil {
			t.Error(err)
		}
	}
	c.HangNameNode(t, 1)
	late := make(chan error, 1)
	go func() { late <- read(s) }()
	c.ContNameNode(t, 0)
	c.Activate(t, 0)
	if err := <-late; err != nil {
		t.Error(err)
	}
	if err := read(never); err != nil {
		t.Error(err)
	}

	// A job starts while no NameNode runs.
	c.StopNameNode(t, 1)
	c.StopNameNode(t, 0)
	begin := time.Now()
	none, _ := sources(NoRetry)
	_, err := none.Expand(context.Background(), []string{uri})
	wantError(t, err, fsys.ErrUnavailable, atOnce, begin, "connection refused", "NameNode")
	early, _ := sources(0)
	go func() {
		_, err := early.Expand(context.Background(), []string{uri})
		late <- err
	}()
	c.StartNameNode(t, 0)
	c.StartNameNode(t, 1)
	time.Sleep(time.Until(begin.Add(8 * time.Second))) // longer than a first contact was once given
	until(t, "a NameNode can become active", func() bool { return c.TryActivate(0) == nil })
	if err := <-late; err != nil {
		t.Error(err)
	}
}

// A pair of which the NameNode listed first swallows everything.
func (h *hdfsTest) blackHole(t *testing.T) {
	hole, asked := blackHole(t)
	s, log := hdfsSources(t, Options{ConfDir: pairConf(t, hole, h.c.Addr()), TimeoutMs: 10_000, RetryMs: NoRetry})
	h.put(t, []byte("x"), "/hole/x", hdfstest.PutOptions{})
	for range 3 {
		wantBytes(t, s, mustExpand(t, s, "hdfs://pair/hole/x")[0], 0, []byte("x"))
		reconnect(s)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the black hole was asked %d times:\n%s", n, log)
	}
	if !strings.Contains(log.String(), "another NameNode is used") {
		t.Error("the change of the NameNode was not logged")
	}
}
