package hadoop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"aibox/internal/hdfstest"
	"aibox/reader/source/internal/fsys"
)

// TestHDFSReplicas runs against a cluster whose two DataNode processes can be
// slowed down, and whose replicas are damaged on disk.
func TestHDFSReplicas(t *testing.T) {
	t.Parallel()
	h := &hdfsTest{c: hdfstest.Shared(t, "replicas", hdfstest.Config{DataNodes: 2, Separate: true, Proxied: true})}
	t.Run("Truncated", h.truncated)
	t.Run("AllTruncated", h.allTruncated)
	t.Run("ReadErrors", h.readErrors)
	t.Run("NoChecksums", h.noChecksums)
	t.Run("Slow", h.slow)
	t.Run("AllSlow", h.allSlow)
	t.Run("Trickle", h.trickle)
	t.Run("Silent", h.silentDataNode)
	t.Run("Lost", h.lost)
}

const mebi = 1 << 20

// wantLines bounds what was logged.
func wantLines(t *testing.T, log *testLog, most int) {
	t.Helper()
	if n := strings.Count(log.String(), "\n"); n > most {
		t.Errorf("%d lines were logged, at most %d were expected", n, most)
	}
}

// wantReported waits until the NameNode tells of one replica only.
func (h *hdfsTest) wantReported(t *testing.T, path string, offset int64) {
	t.Helper()
	until(t, fmt.Sprintf("the NameNode is told of the bad replica of %s at %d", path, offset),
		func() bool { return h.c.Located(t, path, offset) == 1 })
}

// badOffset is where a reader has found a replica to be bad, as it logs it. That a DataNode is
// slow, which it may be on a busy machine, is logged as well.
var badOffset = regexp.MustCompile(`a replica is bad.* block=blk_\S+ offset=(\d+)`)

// A replica that is shorter than its block is replaced by another one, without
// any retry. The NameNode decides which replica is read first, so that only some
// of the truncated ones are met.
func (h *hdfsTest) truncated(t *testing.T) {
	text := logText(130_000) // four blocks
	met := 0
	for _, missing := range []int64{1, 1000, 300_000, mebi, 511, 512, 65_536, mebi - 1} { // of the second block
		s, log := hdfsSources(t, Options{RetryMs: 1})
		const path = "/truncated/one"
		f := mustExpand(t, s, h.put(t, text, path, hdfstest.PutOptions{}))[0]
		h.c.TruncateReplica(t, path, 0, 2*mebi-missing)
		wantBytes(t, s, f, 0, text)
		h.c.TruncateReplica(t, path, 1, 3*mebi-missing) // of the third, the other DataNode's
		wantBytes(t, s, f, 0, text)
		wantBytes(t, s, f, 2*mebi-1, text)
		wantLines(t, log, 10)
		for _, m := range badOffset.FindAllStringSubmatch(log.String(), -1) {
			offset, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			h.wantReported(t, path, offset)
			if met++; !strings.Contains(log.String(), f.URI) {
				t.Errorf("the log does not name the file:\n%s", log)
			}
		}
	}
	if met == 0 {
		t.Error("no truncated replica was met in sixteen")
	}
}

func (h *hdfsTest) allTruncated(t *testing.T) {
	for _, retryMs := range []int{1, longRetryMs} {
		s, log := hdfsSources(t, Options{RetryMs: retryMs})
		text := logText(100_000)
		const path = "/truncated/all"
		uri := h.put(t, text, path, hdfstest.PutOptions{})
		f := mustExpand(t, s, uri)[0]
		h.c.TruncateReplica(t, path, 0, mebi+500_000)
		h.c.TruncateReplica(t, path, 1, mebi+600_000)
		begin := time.Now()
		got, err := readRange(context.Background(), s, f, 0)
		var corrupt *fsys.CorruptError
		if !errors.As(err, &corrupt) || corrupt.URI != uri || !strings.HasPrefix(corrupt.Block, "blk_") ||
			corrupt.Offset < mebi+500_000 || corrupt.Offset > mebi+600_000 || !strings.Contains(err.Error(), corrupt.Block) {
			t.Errorf("retry_ms %d: %v", retryMs, err)
		} else if got != string(text[:corrupt.Offset]) {
			t.Errorf("retry_ms %d: handed out %d bytes, want the %d good ones", retryMs, len(got), corrupt.Offset)
		}
		if d := time.Since(begin); d > atOnce {
			t.Errorf("took %v", d)
		}
		wantLines(t, log, 30)
		wantBytes(t, s, f, 2*mebi, text) // the rest is fine
	}
}

// A DataNode that gets a read error, or cannot open the file.
func (h *hdfsTest) readErrors(t *testing.T) {
	s, log := hdfsSources(t, Options{RetryMs: 1})
	text := logText(130_000)
	const path = "/broken/one"
	f := mustExpand(t, s, h.put(t, text, path, hdfstest.PutOptions{}))[0]
	h.c.BreakReplica(t, path, 0, 0)
	h.c.BreakReplica(t, path, 1, mebi)
	h.c.RemoveReplica(t, path, 0, 2*mebi)
	h.c.RemoveReplica(t, path, 1, 3*mebi)
	wantBytes(t, s, f, 0, text)
	wantLines(t, log, 20)

	begin := time.Now()
	h.c.BreakReplica(t, path, 1, 0)
	_, err := readRange(context.Background(), s, f, 0)
	var corrupt *fsys.CorruptError
	if !errors.As(err, &corrupt) {
		wantError(t, err, fsys.ErrUnavailable, atOnce, begin, f.URI, "blk_", "at byte 0")
	} else if corrupt.Offset != 0 || corrupt.URI != f.URI {
		t.Error(err)
	}
}

// A DataNode that lost the checksums of a replica sends it without any, and
// so with whatever bytes it has.
func (h *hdfsTest) noChecksums(t *testing.T) {
	s, log := hdfsSources(t, Options{RetryMs: 1})
	text := logText(50_000)
	// The NameNode chooses which replica is read first, so it may take some files until one
	// of those without checksums is.
	for n := 0; !strings.Contains(log.String(), "checksums are missing"); n++ {
		if n == 32 {
			t.Fatal("the missing checksums were not logged")
		}
		path := fmt.Sprintf("/unchecked/%d", n)
		f := mustExpand(t, s, h.put(t, text, path, hdfstest.PutOptions{}))[0]
		for replica, at := range []int64{1000, mebi + 1000} {
			h.c.CorruptReplica(t, path, replica, at)
			h.c.RemoveChecksums(t, path, replica, at)
		}
		wantBytes(t, s, f, 0, text)
		wantBytes(t, s, f, 1500, text)
	}

	const none = "/unchecked/none"
	f := mustExpand(t, s, h.put(t, text, none, hdfstest.PutOptions{}))[0]
	for replica := range 2 {
		h.c.RemoveChecksums(t, none, replica, mebi)
	}
	begin := time.Now()
	got, err := readRange(context.Background(), s, f, 0)
	var corrupt *fsys.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Offset != mebi || got != string(text[:mebi]) ||
		!strings.Contains(err.Error(), "checksums") || !strings.Contains(err.Error(), "allow_missing_checksums") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if d := time.Since(begin); d > atOnce {
		t.Errorf("took %v", d)
	}
	lenient, log := hdfsSources(t, Options{AllowMissingChecksums: true})
	wantBytes(t, lenient, f, 0, text)
	if l := log.String(); !strings.Contains(l, "unverified") || !strings.Contains(l, f.URI) {
		t.Errorf("no warning:\n%s", l)
	}
}

// A DataNode that becomes slow is left for another one.
func (h *hdfsTest) slow(t *testing.T) {
	for range 5 {
		if h.leavesSlow(t) {
			return
		}
	}
	t.Error("the other DataNode was too slow as well, each time")
}

// leavesCrawling returns whether it could be tested: the other DataNode may also have been
// too slow, on a busy machine.
func (h *hdfsTest) leavesSlow(t *testing.T) bool {
	s, log := hdfsSources(t, Options{})
	f := mustExpand(t, s, h.big(t))[0]
	r, head := startRead(t, s, f)
	node := h.serving(t, r)
	h.c.SlowDataNode(t, node, 200_000) // more than a minute for a block
	defer h.c.SlowDataNode(t, node, 0)
	finishRead(t, r, head)
	other := "datanode=" + h.c.DataNodeAddr(1-node)
	if t.Failed() || strings.Contains(log.String(), other) {
		t.Log(log)
		return t.Failed()
	}
	if !strings.Contains(log.String(), `is very slow; another one is used" datanode=`+h.c.DataNodeAddr(node)) {
		t.Errorf("the DataNode was not left:\n%s", log)
	}
	wantBytes(t, s, f, 0, bigText()) // it is not asked first again
	wantLines(t, log, 10)
	return true
}

// Where all DataNodes are slow they are put up with.
func (h *hdfsTest) allSlow(t *testing.T) {
	s, log := hdfsSources(t, Options{RetryMs: 1})
	text := logText(50_000)
	f := mustExpand(t, s, h.put(t, text, "/slow/a", hdfstest.PutOptions{}))[0]
	for node := range 2 {
		h.c.SlowDataNode(t, node, 300_000)
		defer h.c.SlowDataNode(t, node, 0)
	}
	wantBytes(t, s, f, 0, text)
	if !strings.Contains(log.String(), "is very slow") {
		t.Error("not logged")
	}
	wantLines(t, log, 10)
}

// Bytes that keep dribbling in do not keep a reader from giving up.
func (h *hdfsTest) trickle(t *testing.T) {
	s, log := hdfsSources(t, Options{TimeoutMs: 5000, RetryMs: 12_000})
	f := mustExpand(t, s, h.put(t, logText(10_000), "/slow/b", hdfstest.PutOptions{}))[0]
	for node := range 2 {
		h.c.SlowDataNode(t, node, 20)
		defer h.c.SlowDataNode(t, node, 0)
	}
	begin := time.Now()
	_, err := readRange(context.Background(), s, f, 0)
	wantError(t, err, fsys.ErrUnavailable, atOnce, begin, f.URI, "blk_", "at byte 0")
	wantLines(t, log, 30)
}

// A DataNode that swallows everything costs the time-out once, not once a block.
func (h *hdfsTest) silentDataNode(t *testing.T) {
	text := bytes.Repeat(logText(1000), 100)
	const path = "/hole/a"
	h.put(t, text, path, hdfstest.PutOptions{BlockBytes: 64 << 10}) // some sixty blocks
	for node := range 2 {
		h.wantDialedSeldom(t, path, text, node)
	}
}

// wantDialedSeldom reads a file while a DataNode swallows everything, and checks that it is dialed only
// a few times.
func (h *hdfsTest) wantDialedSeldom(t *testing.T, path string, text []byte, node int) {
	t.Helper()
	s, log := hdfsSources(t, Options{})
	f := mustExpand(t, s, h.c.URI(path))[0]
	h.c.StopDataNode(t, node)
	before := h.c.Connections(node)
	wantBytes(t, s, f, 0, text)
	h.c.ContDataNode(t, node)
	if n := h.c.Connections(node) - before; n > 3 {
		t.Errorf("DataNode %d was dialed %d times", node, n)
	}
	wantLines(t, log, 10)
}

// A block that no DataNode has any more is not the NameNode's fault.
func (h *hdfsTest) lost(t *testing.T) {
	s, _ := hdfsSources(t, Options{RetryMs: 2000})
	text := logText(50_000)
	const path = "/lost/a"
	f := mustExpand(t, s, h.put(t, text, path, hdfstest.PutOptions{}))[0]
	for node := range 2 {
		h.c.KillDataNode(t, node)
	}
	check := func(words ...string) {
		t.Helper()
		begin := time.Now()
		_, err := readRange(context.Background(), s, f, mebi)
		wantError(t, err, fsys.ErrUnavailable, atOnce, begin, append(words, f.URI, "blk_", "at byte 1048576", "hdfs fsck")...)
		if err != nil && strings.Contains(err.Error(), "NameNode") {
			t.Errorf("the NameNode is doubted: %v", err)
		}
	}
	check()
	for range 2 {
		h.c.RemoveReplica(t, path, 0, mebi)
	}
	for node := range 2 {
		h.c.StartDataNode(t, node)
	}
	until(t, "the DataNodes have reported their blocks", func() bool { return h.c.Located(t, path, mebi) == 0 })
	check("no running DataNode has it")
}
