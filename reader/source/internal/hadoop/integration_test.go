package hadoop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/internal/hdfstest"
	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

func TestMain(m *testing.M) {
	systemConfDir = "/nonexistent" // what lies on this machine does not matter
	hdfstest.Main(m)
}

// testLog is where a test's Sources log, so that it can see what they noticed.
type testLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// hdfsSources returns Sources with time limits that suit a test on a busy machine: a
// server that works may take long to answer. A test in which a server hangs, or in which
// none serves, sets limits of its own.
func hdfsSources(t *testing.T, opts Options) (*testSources, *testLog) {
	t.Helper()
	if opts.TimeoutMs == 0 {
		opts.TimeoutMs = 60_000
	}
	if opts.RetryMs == 0 {
		opts.RetryMs = longRetryMs
	}
	log := &testLog{}
	s := &testSources{opts: opts, log: slog.New(slog.NewTextHandler(log, nil)), clusters: map[string]*Cluster{}}
	t.Cleanup(func() {
		s.close()
		if t.Failed() {
			t.Logf("log of the sources:\n%s", log)
		}
	})
	return s, log
}

func mustExpand(t *testing.T, s *testSources, uris ...string) []fsys.File {
	t.Helper()
	files, err := s.Expand(context.Background(), uris)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// wantBytes reads f from offset on and compares it with the original.
func wantBytes(t *testing.T, s *testSources, f fsys.File, offset int64, original []byte) {
	t.Helper()
	got, err := readRange(context.Background(), s, f, offset)
	if err != nil {
		t.Errorf("%s from %d: %v", f.URI, offset, err)
	} else if got != string(original[offset:]) {
		t.Errorf("%s from %d: bytes differ", f.URI, offset)
	}
}

// atOnce is a limit for what must not wait for the retry time nor hang, on a machine
// that is busy with other tests.
const atOnce = longRetryMs / 3 * time.Millisecond

// longRetryMs is a time for retries in which any server of a test starts.
const longRetryMs = 600_000

// until waits for a condition, as long as a busy machine may need.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(longRetryMs * time.Millisecond); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// wantError checks the kind of an error, that it names the URI, and that it
// came within the time.
func wantError(t *testing.T, err, kind error, within time.Duration, begin time.Time, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
	if d := time.Since(begin); d > within {
		t.Errorf("error came after %v: %v", d, err)
	}
	t.Logf("%.1f s: %v", time.Since(begin).Seconds(), err)
}

var bigText = sync.OnceValue(func() []byte {
	line := logText(20_000) // about 0.8 MB
	var b bytes.Buffer
	for i := 0; b.Len() < 24<<20; i++ {
		fmt.Fprintf(&b, "%d\n", i)
		b.Write(line)
	}
	return b.Bytes()
})

// TestHDFS runs against one cluster with two DataNode processes.
func TestHDFS(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	c := hdfstest.Shared(t, "plain", hdfstest.Config{DataNodes: 2, Separate: true, Keys: true,
		Conf: map[string]string{"dfs.blocksize": "1048576", // of files that we write
			"dfs.ls.limit": "7"}}) // entries of a directory in an answer
	h := &hdfsTest{c: c}
	t.Run("Read", h.read)
	t.Run("Glob", h.glob)
	t.Run("ReadAt", h.readAt)
	t.Run("OddChecksums", h.oddChecksums)
	t.Run("Write", h.write)
	t.Run("BlackHole", h.blackHole)
	t.Run("Permission", h.permission)
	t.Run("BeingWritten", h.beingWritten)
	t.Run("Changed", h.changed)
	t.Run("Unreadable", h.unreadable)
	t.Run("Snapshots", h.snapshots)
	t.Run("Names", h.names)
	t.Run("Cancel", h.cancel)
	t.Run("OneReplicaCorrupted", h.oneReplicaCorrupted)
	t.Run("AllReplicasCorrupted", h.allReplicasCorrupted)
	t.Run("NameNodeRestart", h.nameNodeRestart)
	t.Run("DataNodeHung", h.dataNodeHung)
	t.Run("DataNodeKilled", h.dataNodeKilled)
	t.Run("WriteSizes", h.writeSizes)
	t.Run("WriteDataNodeDead", h.writeDataNodeDead)
	t.Run("WriteDataNodeDies", h.writeDataNodeDies)
	t.Run("WriteDataNodeHung", h.writeDataNodeHung)
	t.Run("WriteRefused", h.writeRefused)
	t.Run("SafeMode", h.safeMode)
	t.Run("WriteInterrupted", h.writeInterrupted)
	t.Run("WriteTempGone", h.writeTempGone)
	t.Run("WriteLeftover", h.writeLeftover)
	t.Run("Throughput", h.throughput)
	t.Logf("%.1f s", time.Since(begin).Seconds())
}

type hdfsTest struct {
	c   *hdfstest.Cluster
	uri string // of bigText
}

func (h *hdfsTest) put(t *testing.T, data []byte, path string, o hdfstest.PutOptions) string {
	t.Helper()
	h.c.PutBytes(t, data, path, o)
	return h.c.URI(path)
}

func (h *hdfsTest) read(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	text := logText(100_000) // about 4 MB in blocks of 1 MiB
	uri := h.put(t, text, "/read/a.csv", hdfstest.PutOptions{})
	f := mustExpand(t, s, uri)[0]
	if f.Size != int64(len(text)) || f.URI != uri || f.ModTime.IsZero() {
		t.Errorf("listed as %+v", f)
	}
	const block = 1 << 20
	var wg sync.WaitGroup
	for _, offset := range []int64{0, 1, 511, 512, 513, block - 1, block, block + 1, 2*block + 777, f.Size - 1, f.Size} {
		wg.Go(func() { wantBytes(t, s, f, offset, text) })
	}
	wg.Wait()

	empty := mustExpand(t, s, h.put(t, nil, "/read/empty", hdfstest.PutOptions{}))[0]
	wantBytes(t, s, empty, 0, nil)
}

func (h *hdfsTest) glob(t *testing.T) {
	s, _ := hdfsSources(t, Options{ConfDir: h.c.ConfDir()})
	for _, name := range []string{"day=1/b", "day=1/a", "day=2/hour=1/x", "day=2/_SUCCESS", "B"} {
		h.put(t, []byte(name), "/glob/"+name, hdfstest.PutOptions{})
	}
	for pattern, want := range map[string]string{
		"/glob/*":             "B day=1/a day=1/b day=2/hour=1/x",
		"/glob/day=*":         "day=1/a day=1/b day=2/hour=1/x",
		"/glob/day=[13]/?":    "day=1/a day=1/b",
		"/glob/{B,day=1/b}":   "B day=1/b",
		"/glob/day=2/":        "day=2/hour=1/x",
		"/glob/day=1/../B":    "B",
		"/glob/day=2/_SUCC*S": "day=2/_SUCCESS",
	} {
		var got []string
		for _, f := range mustExpand(t, s, h.c.URI(pattern)) {
			got = append(got, strings.TrimPrefix(f.URI, h.c.URI("/glob/")))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	// fs.defaultFS of core-site.xml
	if f := mustExpand(t, s, "hdfs:///glob/B")[0]; f.URI != "hdfs:///glob/B" {
		t.Errorf("default file system: %+v", f)
	} else {
		wantBytes(t, s, f, 0, []byte("B"))
	}
	for _, pattern := range []string{"/glob/none", "/glob/x*", "/none/*", "/glob/B/x"} {
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{h.c.URI(pattern)})
		wantError(t, err, fsys.ErrNotFound, atOnce, begin, h.c.URI(pattern))
	}
}

// Whatever a name in HDFS may be, it is written, listed and read, and a directory has all of its files.
func (h *hdfsTest) names(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	names := []string{"a b", "a%20b", "a#b", "a?b", "a\nb", "\u00e4\u65e5\U0001d11e", "a&b;c=d,e'f\"", "[x]", "{y", "a\\b", "a*b", "~", "x" + strings.Repeat("y", 230)}
	for _, name := range names {
		w, err := s.Create(context.Background(), h.c.URI("/names/"+name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, name); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, s, mustExpand(t, s, h.c.URI("/names/"+name))[0], 0, []byte(name))
	}
	if files := mustExpand(t, s, h.c.URI("/names")); len(files) != len(names) {
		t.Errorf("%d files, want %d", len(files), len(names))
	}
}

func (h *hdfsTest) readAt(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	text := logText(70_000)
	f := mustExpand(t, s, h.put(t, text, "/at/a", hdfstest.PutOptions{}))[0]
	at, err := s.OpenAt(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for column := range 4 { // four columns read in turn, page by page, at once
		wg.Go(func() {
			b := make([]byte, 10_000)
			for page := range 10 {
				off := int64(column*500_000 + page*len(b))
				if n, err := at.ReadAt(b, off); n != len(b) || err != nil || !bytes.Equal(b, text[off:off+int64(n)]) {
					t.Errorf("ReadAt %d: %d, %v", off, n, err)
				}
			}
		})
	}
	wg.Wait()
	// A hundred columns in turn.
	begin := time.Now()
	b := make([]byte, 1650)
	for round := range 10 {
		for column := range 100 {
			off := int64(column*16_500 + round*len(b))
			if n, err := at.ReadAt(b, off); n != len(b) || err != nil || !bytes.Equal(b, text[off:off+int64(n)]) {
				t.Fatalf("ReadAt %d: %d, %v", off, n, err)
			}
		}
	}
	t.Logf("1000 reads of a hundred columns: %v", time.Since(begin))
	b = make([]byte, 10)
	if n, err := at.ReadAt(b, f.Size-4); n != 4 || err != io.EOF || string(b[:4]) != string(text[len(text)-4:]) {
		t.Errorf("at the end: %d, %v, %q", n, err, b)
	}
	if n, err := at.ReadAt(b, f.Size); n != 0 || err != io.EOF {
		t.Errorf("past the end: %d, %v", n, err)
	}
	if err := at.Close(); err != nil {
		t.Error(err)
	}
}

// Files written with other checksum chunks than 512 bytes, also smaller than
// what is asked of the library at a time, which then would not verify them.
func (h *hdfsTest) oddChecksums(t *testing.T) {
	s, log := hdfsSources(t, Options{})
	text := logText(10_000)
	for _, size := range []int{16, 128, 256, 512, 1024, 4096} {
		path := fmt.Sprintf("/chunks/%d", size)
		o := hdfstest.PutOptions{ChecksumBytes: size, BlockBytes: 64 << 10}
		f := mustExpand(t, s, h.put(t, text, path, o))[0]
		wantBytes(t, s, f, 0, text)
		wantBytes(t, s, f, 70_001, text)
		h.c.CorruptReplica(t, path, 0, 100_000)
		h.c.CorruptReplica(t, path, 1, 200_000)
		wantBytes(t, s, f, 0, text)
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Error(log)
	}
	local := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(local, text, 0o600); err != nil {
		t.Fatal(err)
	}
	put := func(kind string) fsys.File {
		h.c.Shell(t, "-D", "fs.hdfs.impl.disable.cache=true", "-D", "dfs.checksum.type="+kind, "-put", local, "/chunks/"+kind)
		return mustExpand(t, s, h.c.URI("/chunks/"+kind))[0]
	}
	wantBytes(t, s, put("CRC32"), 0, text)
	none := put("NULL")
	begin := time.Now()
	_, err := readRange(context.Background(), s, none, 0)
	var corrupt *fsys.CorruptError
	if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "allow_missing_checksums") || time.Since(begin) > atOnce {
		t.Errorf("without checksums: %v", err)
	}
	unchecked, _ := hdfsSources(t, Options{AllowMissingChecksums: true})
	wantBytes(t, unchecked, none, 70_001, text)
}

func (h *hdfsTest) write(t *testing.T) {
	ctx := context.Background()
	s, _ := hdfsSources(t, Options{})
	uri := h.c.URI("/out/new/dir/part")
	for i, text := range [][]byte{logText(1000), logText(3000)} { // the second replaces the first
		w, err := s.Create(ctx, uri)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Expand(ctx, []string{uri}); i == 0 && !errors.Is(err, fsys.ErrNotFound) {
			t.Errorf("before Close: %v", err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, s, mustExpand(t, s, uri)[0], 0, text)
	}
	w, err := s.Create(ctx, uri)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Abort(), w.Close()); err != nil {
		t.Error(err)
	}
	wantBytes(t, s, mustExpand(t, s, uri)[0], 0, logText(3000))
	// Of several files none appears before all are there.
	if w, err = s.Create(ctx, uri+"-2"); err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(logText(10))
	if err = errors.Join(err, w.Prepare()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Expand(ctx, []string{uri + "-2"}); !errors.Is(err, fsys.ErrNotFound) {
		t.Errorf("after Prepare: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	if w, err = s.Create(ctx, uri+"-2"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), w.Withdraw()); err != nil {
		t.Error(err)
	}
	if _, err := s.Expand(ctx, []string{uri + "-2"}); !errors.Is(err, fsys.ErrNotFound) {
		t.Errorf("after Withdraw: %v", err)
	}
	if _, err := s.Expand(ctx, []string{h.c.URI("/out/new/dir/.*")}); !errors.Is(err, fsys.ErrNotFound) {
		t.Errorf("temporary files left behind: %v", err)
	}
	// Writing where the user may not.
	other, _ := hdfsSources(t, Options{User: "mallory"})
	begin := time.Now()
	for _, path := range []string{"/forbidden/x", "/out/new/dir/x"} {
		_, err = other.Create(ctx, h.c.URI(path))
		wantError(t, err, fsys.ErrPermission, atOnce, begin, h.c.URI(path), "mallory may not write")
	}
}

func (h *hdfsTest) throughput(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	f := mustExpand(t, s, h.big(t))[0]
	buf := make([]byte, 1<<20)
	var best float64
	for range 3 {
		begin := time.Now()
		drain(t, s, f, buf)
		best = max(best, float64(f.Size)/1e6/time.Since(begin).Seconds())
	}
	t.Logf("one stream: %.0f MB/s", best)
}

// drain reads a file, and keeps nothing.
func drain(t *testing.T, s *testSources, f fsys.File, buf []byte) {
	t.Helper()
	r, err := s.OpenRange(context.Background(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, buf)
	if err != nil || n != f.Size {
		t.Fatal(n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A host name that does not exist is reported at once, whatever the time for
// retries.
func TestHDFSUnknownHost(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{"hdfs://nosuchservice.invalid/x"})
	wantError(t, err, fsys.ErrUnavailable, atOnce, begin, "nosuchservice.invalid", "conf_dir")
}

// TestRPCReflection fails when the library no longer has what rpc.go and
// package wire find by reflection.
func TestRPCReflection(t *testing.T) {
	for _, name := range []string{
		"GetBlockLocationsRequestProto", "GetBlockLocationsResponseProto", "LocatedBlockProto",
		"ReportBadBlocksRequestProto", "ReportBadBlocksResponseProto",
		"GetDataEncryptionKeyRequestProto", "GetDataEncryptionKeyResponseProto",
		"BaseHeaderProto", "ClientOperationHeaderProto", "OpReadBlockProto", "BlockOpResponseProto",
		"DataTransferEncryptorMessageProto",
		"AddBlockRequestProto", "AddBlockResponseProto", "AbandonBlockRequestProto", "AbandonBlockResponseProto",
		"CompleteRequestProto", "CompleteResponseProto", "OpWriteBlockProto", "ChecksumProto", "PipelineAckProto",
		"GetListingRequestProto", "GetListingResponseProto", "CreateRequestProto", "CreateResponseProto", "FsPermissionProto",
		"RpcResponseHeaderProto",
	} {
		if _, err := wire.Find(name); err != nil {
			t.Error(err)
		}
	}
}
