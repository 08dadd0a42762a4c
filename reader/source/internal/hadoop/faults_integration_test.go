package hadoop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"aibox/internal/hdfstest"
	"aibox/reader/source/internal/fsys"
)

func (h *hdfsTest) permission(t *testing.T) {
	s, _ := hdfsSources(t, Options{User: "mallory"})
	uri := h.put(t, []byte("secret"), "/perm/file", hdfstest.PutOptions{})
	f := mustExpand(t, s, uri)[0]
	h.c.Chmod(t, "/perm/file", 0o600)
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{uri})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, uri, "mallory")
	_, err = readRange(context.Background(), s, f, 0) // withdrawn after it was listed
	wantError(t, err, fsys.ErrPermission, atOnce, begin, uri)
	h.c.Mkdir(t, "/perm/dir", 0o700)
	_, err = s.Expand(context.Background(), []string{h.c.URI("/perm/dir")})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, "/perm/dir")
}

func (h *hdfsTest) beingWritten(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	for _, n := range []int{0, 1000, 3 << 20} {
		path := fmt.Sprintf("/writing/%d", n)
		h.c.OpenForWriting(t, path, n)
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{h.c.URI("/writing/*")})
		wantError(t, err, fsys.ErrBeingWritten, atOnce, begin, h.c.URI(path))
		h.c.CloseFile(t, path)
		wantBytes(t, s, mustExpand(t, s, h.c.URI(path))[0], 0, make([]byte, n))
	}
}

func (h *hdfsTest) changed(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	uri := h.put(t, logText(100), "/changed/a", hdfstest.PutOptions{})
	f := mustExpand(t, s, uri)[0]
	time.Sleep(10 * time.Millisecond) // HDFS keeps times in ms
	h.put(t, bytes.ToUpper(logText(100)), "/changed/a", hdfstest.PutOptions{})
	begin := time.Now()
	_, err := readRange(context.Background(), s, f, 0)
	wantError(t, err, fsys.ErrChanged, atOnce, begin, uri)
}

// What cannot be read is an error for who means it, at once, and for nobody else.
func (h *hdfsTest) unreadable(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	text := logText(100)
	h.put(t, text, "/unreadable/a", hdfstest.PutOptions{})
	h.c.Encrypt(t, "/unreadable-zone", "key")
	h.c.Shell(t, "-mkdir", "/unreadable-zone/sub")
	h.c.Shell(t, "-touchz", "/unreadable-zone/sub/x")
	h.c.Symlink(t, "/unreadable/a", "/unreadable/link")
	h.c.Symlink(t, "/unreadable", "/unreadable-link")
	for path, words := range map[string][]string{
		"/unreadable/l*":     {"/unreadable/link", "symbolic link to /unreadable/a"},
		"/unreadable/link":   {"/unreadable/link", "symbolic link"},
		"/unreadable-link/a": {"/unreadable-link/a", "symbolic link"},
		"/unreadable":        {"/unreadable/link"},
	} {
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{h.c.URI(path)})
		wantError(t, err, fsys.ErrUnsupported, atOnce, begin, words...)
	}
	wantBytes(t, s, mustExpand(t, s, h.c.URI("/unreadable/a*"))[0], 0, text)
	// Only the NameNode has the keys of this cluster.
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{h.c.URI("/unreadable-zone")})
	wantError(t, err, fsys.ErrConfig, atOnce, begin, "/unreadable-zone/sub/x", `"key"`, "encryption zone", "jceks://", "dfs.encryption.key.provider.uri")
	for _, path := range []string{"/unreadable-zone/y", "/unreadable-zone/sub/y"} {
		begin := time.Now()
		_, err := s.Create(context.Background(), h.c.URI(path))
		wantError(t, err, fsys.ErrConfig, atOnce, begin, path, "encryption zone", "jceks://")
	}
	if names := h.c.List(t, "/unreadable-zone/sub"); len(names) != 1 {
		t.Errorf("left in the zone: %q", names)
	}
}

// A snapshot has the file as it was, and the bytes of the file as it is are never taken for those
// that were listed.
func (h *hdfsTest) snapshots(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	text := logText(1000)
	uri := h.put(t, text, "/snapshots/a", hdfstest.PutOptions{})
	listed := mustExpand(t, s, uri)[0]
	h.c.AllowSnapshots(t, "/snapshots")
	h.c.Shell(t, "-createSnapshot", "/snapshots", "s1")
	h.c.OpenForAppending(t, "/snapshots/a", 500)
	begin := time.Now()
	_, err := readRange(context.Background(), s, listed, 0)
	wantError(t, err, fsys.ErrChanged, atOnce, begin, uri)
	_, err = s.Expand(context.Background(), []string{uri})
	wantError(t, err, fsys.ErrBeingWritten, atOnce, begin, uri)
	h.c.CloseFile(t, "/snapshots/a")
	wantBytes(t, s, mustExpand(t, s, uri)[0], 0, append(bytes.Clone(text), make([]byte, 500)...))
	for _, path := range []string{"/snapshots/.snapshot/s1/a", "/snapshots/.snapshot/s*/a", "/snapshots/.snapshot/s1"} {
		wantBytes(t, s, mustExpand(t, s, h.c.URI(path))[0], 0, text)
	}
	_, err = s.Create(context.Background(), h.c.URI("/snapshots/.snapshot/s1/b"))
	wantError(t, err, fsys.ErrFailed, atOnce, begin, "read-only snapshot")
}

// big stores bigText once, in blocks larger than all buffers between a
// DataNode and a reader, so that a fault in mid-block is felt.
func (h *hdfsTest) big(t *testing.T) (uri string) {
	t.Helper()
	if h.uri == "" {
		h.uri = h.put(t, bigText(), "/big", hdfstest.PutOptions{BlockBytes: 16 << 20})
	}
	return h.uri
}

// startRead reads the first 64 KiB.
func startRead(t *testing.T, s *testSources, f fsys.File) (io.ReadCloser, []byte) {
	t.Helper()
	r, err := s.OpenRange(context.Background(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64<<10)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return r, b
}

// finishRead reads the rest and compares everything with bigText.
func finishRead(t *testing.T, r io.ReadCloser, head []byte) {
	t.Helper()
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("after %d bytes: %v", len(head)+len(rest), err)
	} else if !bytes.Equal(append(head, rest...), bigText()) {
		t.Error("bytes differ")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// serving is the DataNode that a reader reads from.
func (h *hdfsTest) serving(t *testing.T, r io.Reader) int {
	t.Helper()
	node := r.(*reader).s.rep.node
	for i := range 2 {
		if h.c.DataNodeAddr(i) == node {
			return i
		}
	}
	t.Fatalf("no DataNode at %s", node)
	return 0
}

func (h *hdfsTest) cancel(t *testing.T) {
	s, log := hdfsSources(t, Options{})
	f := mustExpand(t, s, h.big(t))[0]
	ctx, cancel := context.WithCancel(context.Background())
	r, err := s.OpenRange(ctx, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, r, 1000); err != nil {
		t.Fatal(err)
	}
	for node := range 2 { // so that no other one is asked either
		h.c.StopDataNode(t, node)
		defer h.c.ContDataNode(t, node)
	}
	begin := time.Now()
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err = io.Copy(io.Discard, r)
	if d := time.Since(begin); !errors.Is(err, context.Canceled) || d > atOnce {
		t.Errorf("after %v: %v", d, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); text != "" {
		t.Errorf("DataNodes that did nothing wrong were blamed:\n%s", text)
	}
}

func (h *hdfsTest) oneReplicaCorrupted(t *testing.T) {
	s, log := hdfsSources(t, Options{})
	text := logText(150_000)
	f := mustExpand(t, s, h.put(t, text, "/corrupt/one", hdfstest.PutOptions{}))[0]
	// Whichever replica is read first, some block has that one corrupted.
	h.c.CorruptReplica(t, "/corrupt/one", 0, 300_000)
	h.c.CorruptReplica(t, "/corrupt/one", 1, 1<<20+12345)
	h.c.CorruptReplica(t, "/corrupt/one", 0, 2<<20+512)
	h.c.CorruptReplica(t, "/corrupt/one", 1, 3<<20)
	for _, offset := range []int64{0, 299_999, 300_000, 1<<20 + 12345, 2<<20 + 511} {
		wantBytes(t, s, f, offset, text)
	}
	if l := log.String(); !strings.Contains(l, "a replica is bad") || !strings.Contains(l, f.URI) || !strings.Contains(l, "block=blk_") || !strings.Contains(l, "offset=") {
		t.Error("the corrupted replicas were not logged with file, block and offset")
	}
}

func (h *hdfsTest) allReplicasCorrupted(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	text := logText(100_000)
	uri := h.put(t, text, "/corrupt/all", hdfstest.PutOptions{})
	f := mustExpand(t, s, uri)[0]
	const bad = 1<<20 + 100_000
	const chunk = bad / 512 * 512 // nothing of the chunk that holds it may come out
	h.c.CorruptAll(t, "/corrupt/all", bad)
	for _, offset := range []int64{0, bad} {
		begin := time.Now()
		got, err := readRange(context.Background(), s, f, offset)
		var corrupt *fsys.CorruptError
		if !errors.As(err, &corrupt) || corrupt.URI != uri || corrupt.Offset != max(chunk, offset) {
			t.Errorf("from %d: %v", offset, err)
		}
		if want := text[offset:max(chunk, offset)]; got != string(want) {
			t.Errorf("from %d: handed out %d bytes, want %d good ones", offset, len(got), len(want))
		}
		if d := time.Since(begin); d > atOnce {
			t.Errorf("took %v", d)
		}
	}
	wantBytes(t, s, f, chunk+512, text) // the rest is fine
}

func (h *hdfsTest) nameNodeRestart(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	f := mustExpand(t, s, h.big(t))[0]
	r, head := startRead(t, s, f)
	h.c.StopNameNode(t, 0)
	late := make(chan error) // a range that is opened while the NameNode is away
	go func() {
		got, err := readRange(context.Background(), s, f, 20<<20)
		if err == nil && got != string(bigText()[20<<20:]) {
			err = errors.New("bytes differ")
		}
		late <- err
	}()
	time.Sleep(300 * time.Millisecond)
	h.c.StartNameNode(t, 0)
	if err := <-late; err != nil {
		t.Error(err)
	}
	finishRead(t, r, head)
	h.c.WaitDataNodes(t, 2)
}

func (h *hdfsTest) dataNodeHung(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	f := mustExpand(t, s, h.big(t))[0]
	r, head := startRead(t, s, f)
	node := h.serving(t, r)
	h.c.StopDataNode(t, node)
	begin := time.Now()
	finishRead(t, r, head)
	if d := time.Since(begin); d > atOnce {
		t.Errorf("fail-over took %v", d)
	}
	h.c.ContDataNode(t, node)
}

func (h *hdfsTest) dataNodeKilled(t *testing.T) {
	s, _ := hdfsSources(t, Options{TimeoutMs: 5000})
	f := mustExpand(t, s, h.big(t))[0]
	r, head := startRead(t, s, f)
	node := h.serving(t, r)
	h.c.KillDataNode(t, node)
	finishRead(t, r, head)

	// The other one hangs too: nobody has the block for a while.
	r, head = startRead(t, s, f)
	h.c.StopDataNode(t, 1-node)
	h.c.StartDataNode(t, node)
	finishRead(t, r, head)
	h.c.ContDataNode(t, 1-node)
	h.c.WaitDataNodes(t, 2)
}
