package hadoop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/internal/hdfstest"
	"aibox/internal/process"
	"aibox/internal/testseed"
	"aibox/reader/source/internal/fsys"
)

// TestHDFSStriped reads erasure-coded files in a cluster whose five DataNode processes fail in turn.
func TestHDFSStriped(t *testing.T) {
	t.Parallel()
	h := &hdfsTest{c: hdfstest.Shared(t, "striped", hdfstest.Config{DataNodes: 5, Separate: true, Proxied: true,
		Conf: map[string]string{"dfs.blocksize": "1048576"}})}
	t.Run("Sizes", h.stripedSizes)
	t.Run("ReadAt", h.stripedReadAt)
	t.Run("Corrupt", h.stripedCorrupt)
	t.Run("Missing", h.stripedMissing)
	t.Run("Hung", h.stripedHung)
	t.Run("Silent", h.stripedSilent)
	t.Run("Killed", h.stripedKilled)
	t.Run("Slow", h.stripedSlow)
	t.Run("NoChecksums", h.stripedNoChecksums)
	t.Run("Write", h.stripedWrite)
	t.Run("Throughput", h.stripedThroughput)
}

// TestHDFSPolicies decodes files of all policies of Hadoop, in a cluster with block tokens, of
// which each block of a group has its own, and encrypted transfers.
func TestHDFSPolicies(t *testing.T) {
	t.Parallel()
	h := &hdfsTest{c: hdfstest.Start(t, hdfstest.Config{DataNodes: 14, Conf: map[string]string{
		"dfs.block.access.token.enable":           "true",
		"dfs.encrypt.data.transfer":               "true",
		"dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
	}})}
	for _, p := range []struct {
		name         string
		data, parity int
	}{{"RS-6-3-1024k", 6, 3}, {"RS-3-2-1024k", 3, 2}, {"RS-LEGACY-6-3-1024k", 6, 3}, {"XOR-2-1-1024k", 2, 1}, {"RS-10-4-1024k", 10, 4}} {
		t.Run(p.name, func(t *testing.T) {
			rng := testseed.Rand(t)
			data := randomBytes(rng, p.data*5<<18)
			path := h.striped(t, p.name, data, 2<<20)
			s, _ := hdfsSources(t, Options{RetryMs: 1})
			f := mustExpand(t, s, h.c.URI(path))[0]
			wantBytes(t, s, f, 0, data)
			lost := rng.Perm(p.data + p.parity)[:p.parity]
			lost[0] = rng.IntN(p.data) // a data block, if the others are not
			for _, u := range slices.Compact(slices.Sorted(slices.Values(lost))) {
				h.removeUnit(t, path, 0, u)
				wantBytes(t, s, f, 0, data)
				wantBytes(t, s, f, rng.Int64N(f.Size), data)
			}
		})
	}
	t.Run("StaleTokens", func(t *testing.T) {
		staleTokens(t, h.c, mustExpand(t, &testSources{clusters: map[string]*Cluster{}}, h.c.URI(h.striped(t, "RS-3-2-1024k", bigText(), 1<<20)))[0])
	})
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// striped stores an erasure-coded file.
func (h *hdfsTest) striped(t *testing.T, policy string, data []byte, blockBytes int64) (path string) {
	t.Helper()
	dir := "/striped-" + policy
	h.c.ErasureCode(t, dir, policy)
	path = fmt.Sprintf("%s/%s-%d", dir, strings.ReplaceAll(t.Name(), "/", "-"), len(data))
	h.put(t, data, path, hdfstest.PutOptions{BlockBytes: blockBytes})
	return path
}

// removeUnit removes an internal block of the group that has the byte at offset.
func (h *hdfsTest) removeUnit(t *testing.T, path string, offset int64, unit int) {
	t.Helper()
	file, _ := h.c.InternalBlock(t, path, offset, unit)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// corruptUnit flips a bit of the byte at in an internal block.
func (h *hdfsTest) corruptUnit(t *testing.T, path string, offset int64, unit, at int) {
	t.Helper()
	file, _ := h.c.InternalBlock(t, path, offset, unit)
	b, err := os.ReadFile(file)
	if err == nil {
		b[at] ^= 4
		err = os.WriteFile(file, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// wantRanges compares what positioned reads give, in an order in which readers are used again.
func wantRanges(t *testing.T, s *testSources, f fsys.File, rng *rand.Rand, reads int, original []byte) {
	t.Helper()
	at, err := s.OpenAt(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	off := int64(0)
	for i := range reads {
		b := make([]byte, 1+rng.IntN(1+rng.IntN(200_000)))
		if off += rng.Int64N(maxSkipBytes); i%5 == 0 || off >= f.Size {
			off = rng.Int64N(f.Size)
		}
		want := original[off:min(off+int64(len(b)), f.Size)]
		if n, err := at.ReadAt(b, off); n != len(want) || err != nil && (err != io.EOF || n == len(b)) || !bytes.Equal(b[:n], want) {
			t.Fatalf("%d bytes at %d of %d: %d, %v", len(b), off, f.Size, n, err)
		}
		off += int64(len(want))
	}
	if err := at.Close(); err != nil {
		t.Error(err)
	}
}

func (h *hdfsTest) stripedSizes(t *testing.T) {
	rng := testseed.Rand(t)
	s, log := hdfsSources(t, Options{RetryMs: 1})
	for _, c := range []struct {
		policy            string
		data, cell, block int
	}{{"RS-3-2-64k", 3, 64 << 10, 128 << 10}, {"XOR-2-1-1024k", 2, 1 << 20, 2 << 20}} {
		stripe, group := c.data*c.cell, c.data*c.block
		for _, size := range []int{0, 1, c.cell - 1, c.cell, c.cell + 1, stripe - 1, stripe, stripe + 1, stripe + c.cell + 5, group, group + 1, 2*group + stripe + c.cell - 1} {
			data := randomBytes(rng, size)
			f := mustExpand(t, s, h.c.URI(h.striped(t, c.policy, data, int64(c.block))))[0]
			if f.Size != int64(size) {
				t.Errorf("%+v", f)
			}
			wantBytes(t, s, f, 0, data)
			for _, offset := range []int{1, c.cell - 1, c.cell, stripe, group - 1, group} {
				if offset <= size {
					wantBytes(t, s, f, int64(offset), data)
				}
			}
		}
	}
	if text := log.String(); text != "" {
		t.Errorf("something was noticed of files that are whole:\n%s", text)
	}
}

func (h *hdfsTest) stripedReadAt(t *testing.T) {
	rng := testseed.Rand(t)
	s, _ := hdfsSources(t, Options{RetryMs: 1})
	data := randomBytes(rng, 3<<20+rng.IntN(100_000))
	path := h.striped(t, "RS-3-2-64k", data, 512<<10)
	f := mustExpand(t, s, h.c.URI(path))[0]
	wantRanges(t, s, f, rng, 200, data)
	h.removeUnit(t, path, 0, 0)
	h.removeUnit(t, path, 0, 2)
	h.removeUnit(t, path, f.Size-1, 1)
	wantRanges(t, s, f, rng, 200, data)
}

// Whichever data block is corrupt, the others give its bytes, and the NameNode is told.
func (h *hdfsTest) stripedCorrupt(t *testing.T) {
	rng := testseed.Rand(t)
	for unit := range 3 {
		s, log := hdfsSources(t, Options{RetryMs: 1})
		data := randomBytes(rng, 2<<20+unit)
		path := h.striped(t, "RS-3-2-64k", data, 1<<20)
		h.corruptUnit(t, path, 0, unit, 200_000+rng.IntN(300_000))
		h.corruptUnit(t, path, 0, (unit+1+rng.IntN(4))%5, 500_000+rng.IntN(100_000)) // which may be taken in place of it
		f := mustExpand(t, s, h.c.URI(path))[0]
		for _, offset := range []int64{0, rng.Int64N(f.Size)} {
			wantBytes(t, s, f, offset, data)
		}
		if !strings.Contains(log.String(), "a replica is bad") || !strings.Contains(log.String(), f.URI) {
			t.Errorf("the corrupt block was not logged:\n%s", log)
		}
		until(t, "the NameNode is told of a corrupt block", func() bool { return h.c.Located(t, path, 0) < 5 })
		wantBytes(t, s, f, 0, data)
	}
}

// Of a group as many blocks as it has parities may be missing, not one more.
func (h *hdfsTest) stripedMissing(t *testing.T) {
	rng := testseed.Rand(t)
	s, log := hdfsSources(t, Options{RetryMs: 2000})
	data := randomBytes(rng, 1<<20+77)
	path := h.striped(t, "RS-3-2-64k", data, 256<<10)
	uri := h.c.URI(path)
	f := mustExpand(t, s, uri)[0]
	lost := rng.Perm(5)[:3]
	for i, u := range lost {
		h.removeUnit(t, path, 768<<10, u) // of the second group
		if i < 2 {
			wantBytes(t, s, f, 0, data)
			wantLines(t, log, 10)
		}
	}
	begin := time.Now()
	got, err := readRange(context.Background(), s, f, 0)
	var corrupt *fsys.CorruptError
	if !errors.As(err, &corrupt) {
		wantError(t, err, fsys.ErrUnavailable, atOnce, begin, uri)
	}
	if err == nil || !strings.Contains(err.Error(), "3 of the 5 blocks of group blk_") || strings.Count(err.Error(), "block blk_") != 3 {
		t.Errorf("%d of %d bytes, %v", len(got), len(data), err)
	}
	if len(got) < 768<<10 || got != string(data[:len(got)]) {
		t.Errorf("%d bytes were handed out", len(got))
	}
}

// A DataNode that hangs, before a read or in the middle of it, costs little.
func (h *hdfsTest) stripedHung(t *testing.T) {
	h.stripedFails(t, h.c.StopDataNode, h.c.ContDataNode)
}

func (h *hdfsTest) stripedKilled(t *testing.T) {
	h.stripedFails(t, h.c.KillDataNode, func(t testing.TB, node int) {
		h.c.StartDataNode(t, node)
		h.c.WaitDataNodes(t, 5)
	})
}

func (h *hdfsTest) stripedFails(t *testing.T, fail, repair func(testing.TB, int)) {
	rng := testseed.Rand(t)
	data := bytes.Repeat(randomBytes(rng, 5<<20+rng.IntN(100_000)), 12) // more than the buffers of connections hold
	path := h.striped(t, "RS-3-2-1024k", data, 32<<20)
	uri := h.c.URI(path)
	for unit := range 3 {
		_, node := h.c.InternalBlock(t, path, 0, unit)
		_, second := h.c.InternalBlock(t, path, 0, (unit+1+rng.IntN(4))%5)
		s, _ := hdfsSources(t, Options{RetryMs: 1})
		f := mustExpand(t, s, uri)[0]
		r, err := s.OpenRange(context.Background(), f, 0)
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, rng.IntN(8<<20))
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		fail(t, node)
		begin := time.Now()
		rest, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(append(head, rest...), data) {
			t.Errorf("block %d failed after %d bytes: %d more, %v", unit, len(head), len(rest), err)
		}
		_ = r.Close() // everything was read
		t.Logf("block %d: %v", unit, time.Since(begin))
		fail(t, second)
		fresh, _ := hdfsSources(t, Options{RetryMs: 1})
		wantBytes(t, fresh, f, 0, data)
		wantRanges(t, fresh, f, rng, 50, data)
		if unit == 0 { // with one more, the group is lost
			third := 0
			for third == node || third == second {
				third++
			}
			fail(t, third)
			noRetries, _ := hdfsSources(t, Options{TimeoutMs: 2000, RetryMs: 1})
			begin := time.Now()
			_, err := readRange(context.Background(), noRetries, f, 0)
			wantError(t, err, fsys.ErrUnavailable, atOnce, begin, uri, "of the 5 blocks of group blk_", h.c.DataNodeAddr(node))
			patient, _ := hdfsSources(t, Options{TimeoutMs: 3000})
			read := make(chan struct{})
			go func() {
				defer close(read)
				wantBytes(t, patient, f, 0, data)
			}()
			time.Sleep(time.Second)
			repair(t, third)
			<-read
		}
		repair(t, node)
		repair(t, second)
	}
}

// A DataNode that swallows everything costs its time limit once, not once a group.
func (h *hdfsTest) stripedSilent(t *testing.T) {
	text := bytes.Repeat(logText(1000), 100)
	path := h.striped(t, "RS-3-2-64k", text, 64<<10) // some twenty groups
	_, node := h.c.InternalBlock(t, path, 0, 0)
	h.wantDialedSeldom(t, path, text, node)
}

// A DataNode that becomes slow is left; where all are slow, they are put up with.
func (h *hdfsTest) stripedSlow(t *testing.T) {
	data := bigText()
	path := h.striped(t, "RS-3-2-1024k", data, 16<<20)
	s, log := hdfsSources(t, Options{RetryMs: 1})
	f := mustExpand(t, s, h.c.URI(path))[0]
	r, head := startRead(t, s, f)
	_, node := h.c.InternalBlock(t, path, 0, 1)
	h.c.SlowDataNode(t, node, 100_000)
	begin := time.Now()
	finishRead(t, r, head)
	if d := time.Since(begin); d > atOnce || !strings.Contains(log.String(), "datanode="+h.c.DataNodeAddr(node)) {
		t.Errorf("took %v, and logged:\n%s", d, log)
	}
	text := data[:300_000]
	small := mustExpand(t, s, h.c.URI(h.striped(t, "RS-3-2-64k", text, 1<<20)))[0]
	for i := range 5 {
		h.c.SlowDataNode(t, i, 100_000)
		defer h.c.SlowDataNode(t, i, 0)
	}
	s, _ = hdfsSources(t, Options{RetryMs: 1})
	wantBytes(t, s, small, 0, text)
}

func (h *hdfsTest) stripedNoChecksums(t *testing.T) {
	h.c.ErasureCode(t, "/striped-null", "RS-3-2-64k")
	text := logText(10_000)
	local := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(local, text, 0o600); err != nil {
		t.Fatal(err)
	}
	h.c.Shell(t, "-D", "fs.hdfs.impl.disable.cache=true", "-D", "dfs.checksum.type=NULL", "-put", local, "/striped-null/f")
	s, _ := hdfsSources(t, Options{})
	f := mustExpand(t, s, h.c.URI("/striped-null/f"))[0]
	_, err := readRange(context.Background(), s, f, 0)
	if corrupt := new(fsys.CorruptError); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "allow_missing_checksums") {
		t.Error(err)
	}
	unchecked, _ := hdfsSources(t, Options{AllowMissingChecksums: true})
	wantBytes(t, unchecked, f, 70_001, text)
	h.removeUnit(t, "/striped-null/f", 0, 1)
	wantBytes(t, unchecked, f, 0, text)
}

// Where files are erasure coded, replicated ones are written.
func (h *hdfsTest) stripedWrite(t *testing.T) {
	s, log := hdfsSources(t, Options{})
	h.c.ErasureCode(t, "/striped-write", "XOR-2-1-64k")
	writeBack(t, s, h.c.URI("/striped-write/sub/f"), bigText()[:3<<20])
	if n := h.c.Located(t, "/striped-write/sub/f", 2<<20); n != 5 {
		t.Errorf("%d replicas", n)
	}
	if text := log.String(); text != "" {
		t.Error(text)
	}
}

// stripedThroughput logs what reading costs, beside a replicated file of the same bytes.
func (h *hdfsTest) stripedThroughput(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	data := bytes.Repeat(bigText(), 4)
	lost := h.striped(t, "RS-3-2-1024k", data, 48<<20)
	files := []fsys.File{
		mustExpand(t, s, h.put(t, data, "/replicated", hdfstest.PutOptions{BlockBytes: 48 << 20}))[0],
		mustExpand(t, s, h.c.URI(h.striped(t, "RS-3-2-1024k", data[:len(data)-1], 48<<20)))[0],
		mustExpand(t, s, h.c.URI(lost))[0],
	}
	h.removeUnit(t, lost, 0, 1)
	buf := make([]byte, 1<<20)
	var wall, cpu [3]time.Duration
	for range 6 {
		for i, f := range files {
			begin, before := time.Now(), process.ProcessorTimeOrZero()
			drain(t, s, f, buf)
			wall[i], cpu[i] = wall[i]+time.Since(begin), cpu[i]+process.ProcessorTimeOrZero()-before
		}
	}
	t.Logf("%d MB: replicated %v, erasure coded %v, with one of three data blocks lost %v; of the processor %v", 6*len(data)/1e6, wall[0], wall[1], wall[2], cpu)
}
