package hadoop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/internal/hdfstest"
	"aibox/reader/source/internal/fsys"
)

// writeBack writes a file and reads it back.
func writeBack(t *testing.T, s *testSources, uri string, data []byte) {
	t.Helper()
	w, err := s.Create(context.Background(), uri)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wantBytes(t, s, mustExpand(t, s, uri)[0], 0, data)
}

// wantFiles checks which entries a directory has, hidden ones included.
func (h *hdfsTest) wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := h.c.List(t, dir); !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// Sizes at which packets, chunks and blocks end.
func (h *hdfsTest) writeSizes(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	const block = 1 << 20
	for _, size := range []int{0, 1, 511, 512, 513, writePacketBytes - 1, writePacketBytes, writePacketBytes + 1, block - 1, block, block + 1, 3*block + 777} {
		writeBack(t, s, h.c.URI("/sizes/f"), bigText()[:size])
	}
	h.wantFiles(t, "/sizes", "f")
}

// A DataNode that is dead, but not yet for the NameNode, is in the way of some
// blocks, at the front of the pipeline or behind.
func (h *hdfsTest) writeDataNodeDead(t *testing.T) {
	h.c.KillDataNode(t, 0)
	var logs strings.Builder
	for i := range 4 { // new Sources know nothing of the DataNode
		s, log := hdfsSources(t, Options{RetryMs: NoRetry})
		writeBack(t, s, h.c.URI(fmt.Sprintf("/dead/%d", i)), bigText()[:3<<20])
		logs.WriteString(log.String())
	}
	if !strings.Contains(logs.String(), "written again without it") || !strings.Contains(logs.String(), h.c.DataNodeAddr(0)) {
		t.Errorf("the dead DataNode was not named:\n%s", &logs)
	}
	// Nobody is left.
	h.c.KillDataNode(t, 1)
	s, _ := hdfsSources(t, Options{RetryMs: NoRetry})
	w, err := s.Create(context.Background(), h.c.URI("/dead/none"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	wantError(t, w.Close(), fsys.ErrUnavailable, atOnce, begin, h.c.URI("/dead/none"), "DataNode", "connection refused")
	h.c.StartDataNode(t, 0)
	h.c.StartDataNode(t, 1)
	h.wantFiles(t, "/dead", "0", "1", "2", "3")
	s, _ = hdfsSources(t, Options{}) // they may still be starting
	writeBack(t, s, h.c.URI("/dead/again"), []byte("x"))
}

// A DataNode dies while a file is written.
func (h *hdfsTest) writeDataNodeDies(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	data := slices.Concat(bigText(), bigText())
	done := make(chan struct{})
	go func() {
		defer close(done)
		writeBack(t, s, h.c.URI("/dies/f"), data)
	}()
	h.c.Mkdir(t, "/dies", 0o777)
	until(t, "the upload has begun", func() bool { return len(h.c.List(t, "/dies")) > 0 })
	h.c.KillDataNode(t, 1)
	<-done
	h.c.StartDataNode(t, 1)
	h.wantFiles(t, "/dies", "f")
}

// A DataNode hangs: alone in the pipeline's front, it is found by the time limit.
func (h *hdfsTest) writeDataNodeHung(t *testing.T) {
	s, log := hdfsSources(t, Options{TimeoutMs: 5000})
	h.c.StopDataNode(t, 0)
	begin := time.Now()
	for i := range 3 {
		writeBack(t, s, h.c.URI(fmt.Sprintf("/hung/%d", i)), bigText()[:2<<20])
	}
	if d := time.Since(begin); d > 3*atOnce {
		t.Errorf("took %v", d)
	}
	if !strings.Contains(log.String(), "written again without it\" datanode="+h.c.DataNodeAddr(0)) {
		t.Errorf("the hung DataNode was not named:\n%s", log)
	}
	h.c.ContDataNode(t, 0)
}

// What cannot be written is refused before anything is made there, and is not tried again and again.
func (h *hdfsTest) writeRefused(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	h.put(t, nil, "/refused/file", hdfstest.PutOptions{})
	for _, path := range []string{"/refused/file/below", "/refused/" + strings.Repeat("x", 256)} {
		begin := time.Now()
		_, err := s.Create(context.Background(), h.c.URI(path))
		wantError(t, err, fsys.ErrFailed, atOnce, begin, h.c.URI(path))
	}
}

// In safe mode files can be read; what is to be written waits for its end.
func (h *hdfsTest) safeMode(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	noRetries, _ := hdfsSources(t, Options{RetryMs: 1})
	uri := h.put(t, []byte("x"), "/safe/a", hdfstest.PutOptions{})
	h.c.SafeMode(t, true)
	wantBytes(t, s, mustExpand(t, s, uri)[0], 0, []byte("x"))
	begin := time.Now()
	_, err := noRetries.Create(context.Background(), h.c.URI("/safe/b"))
	wantError(t, err, fsys.ErrUnavailable, atOnce, begin, "safe mode", "dfsadmin -safemode get")
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeBack(t, s, h.c.URI("/safe/b"), []byte("y"))
	}()
	time.Sleep(100 * time.Millisecond)
	h.c.SafeMode(t, false)
	<-written
}

// An interrupted upload leaves nothing behind.
func (h *hdfsTest) writeInterrupted(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := s.Create(ctx, h.c.URI("/interrupted/f"))
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := w.Write(bigText()); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() { done <- w.Close() }()
	until(t, "the upload has begun", func() bool { return len(h.c.List(t, "/interrupted")) > 0 })
	cancel()
	if err := <-done; err == nil {
		h.wantFiles(t, "/interrupted", "f")
		t.Skip("SKIP: the upload was quicker than its interruption")
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	h.wantFiles(t, "/interrupted")
}

// A file whose temporary file was taken for that of a killed upload, before it got its name, is
// uploaded again; an older file of the same size is not taken for it.
func (h *hdfsTest) writeTempGone(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	for _, text := range []string{"old", "new"} {
		w, err := s.Create(context.Background(), h.c.URI("/gone/f"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Prepare(); err != nil {
			t.Fatal(err)
		}
		if left := w.(*writer).c.discard(context.Background(), []string{w.(*writer).temp}); len(left) > 0 {
			t.Fatalf("%q are still there", left)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, s, mustExpand(t, s, h.c.URI("/gone/f"))[0], 0, []byte(text))
	}
	h.wantFiles(t, "/gone", "f")
}

// What killed runs left in the same directory is removed, unless somebody may be
// writing it.
func (h *hdfsTest) writeLeftover(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	const open, closed, other = ".e.0123456789ab.aibox.tmp", ".f.0123456789ac.aibox.tmp", ".f.0123456789ad.tmp"
	h.c.OpenForWriting(t, "/left/"+open, 1000)
	h.put(t, []byte("x"), "/left/"+closed, hdfstest.PutOptions{})
	h.put(t, []byte("x"), "/left/"+other, hdfstest.PutOptions{})
	writeBack(t, s, h.c.URI("/left/f"), []byte("1"))
	h.wantFiles(t, "/left", open, closed, other, "f") // both are too young

	for _, c := range s.clusters {
		c.leftoverAge = 0
	}
	writeBack(t, s, h.c.URI("/left/f"), []byte("2"))
	h.wantFiles(t, "/left", open, other, "f") // somebody holds the first one open
	h.c.CloseFile(t, "/left/"+open)
	writeBack(t, s, h.c.URI("/left/f"), []byte("3"))
	h.wantFiles(t, "/left", other, "f")
}
