package hadoop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// fakeDataNode answers each connection, in turn, as a script says: the last
// script also answers those that come after it.
type fakeDataNode struct {
	listener net.Listener
	scripts  []func(w net.Conn, offset int64)
	dialed   atomic.Int32
}

func startFakeDataNode(t *testing.T, scripts ...func(w net.Conn, offset int64)) *fakeDataNode {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &fakeDataNode{listener: l, scripts: scripts}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			op := wire.New("OpReadBlockProto")
			if _, err := r.Discard(3); err == nil && wire.ReadDelimited(r, op) == nil {
				n := int(d.dialed.Add(1))
				d.scripts[min(n, len(scripts))-1](conn, op.Int("offset"))
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return d
}

// accept answers that the block follows, from offset rounded down to a chunk.
func accept(w io.Writer, offset int64, kind, chunk int) int64 {
	from := offset - offset%int64(chunk)
	resp := wire.New("BlockOpResponseProto")
	resp.SetEnum("status", "SUCCESS")
	info := resp.Make("readOpChecksumInfo")
	info.Set("chunkOffset", uint64(from))
	sum := info.Make("checksum")
	names := []string{"CHECKSUM_NULL", "CHECKSUM_CRC32", "CHECKSUM_CRC32C"}
	sum.SetEnum("type", names[kind])
	sum.Set("bytesPerChecksum", uint32(chunk))
	b, err := wire.AppendDelimited(nil, resp)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b) // the test sees what is missing
	return from
}

// packet makes a packet of data, whose checksums are right.
func packet(offset int64, data []byte, kind, chunk int) []byte {
	table := map[int]*crc32.Table{1: crc32.IEEETable, 2: crc32.MakeTable(crc32.Castagnoli)}[kind]
	var sums []byte
	for begin := 0; table != nil && begin < len(data); begin += chunk {
		sums = binary.BigEndian.AppendUint32(sums, crc32.Checksum(data[begin:min(begin+chunk, len(data))], table))
	}
	header := packetHeaderBytes(offset, len(data))
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(sums)+len(data)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(header)))
	return append(append(append(b, header...), sums...), data...)
}

func packetHeaderBytes(offset int64, length int) []byte {
	h := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), uint64(offset))
	h = protowire.AppendFixed64(protowire.AppendTag(h, 2, protowire.Fixed64Type), 7)
	h = protowire.AppendVarint(protowire.AppendTag(h, 3, protowire.VarintType), 0)
	return protowire.AppendFixed32(protowire.AppendTag(h, 4, protowire.Fixed32Type), uint32(int32(length)))
}

// serve sends the block from offset on.
func serve(block []byte, kind, chunk, packetBytes int) func(net.Conn, int64) {
	return func(w net.Conn, offset int64) {
		for at := accept(w, offset, kind, chunk); at < int64(len(block)); at += int64(packetBytes) {
			_, _ = w.Write(packet(at, block[at:min(at+int64(packetBytes), int64(len(block)))], kind, chunk)) // the client may have enough
		}
	}
}

// testBlock is a block of so many bytes with replicas on the DataNodes.
func testBlock(length int, nodes ...*fakeDataNode) *block {
	located := wire.New("LocatedBlockProto")
	id := located.Make("b")
	id.Set("poolId", "BP-1").Set("blockId", uint64(1)).Set("generationStamp", uint64(1)).Set("numBytes", uint64(length))
	token := located.Make("blockToken")
	token.Set("identifier", []byte{}).Set("password", []byte{}).Set("kind", "").Set("service", "")
	b := &block{name: "blk_1_1", length: int64(length), wanted: len(nodes), located: located, identity: located.Value("b")}
	for i, d := range nodes {
		b.replicas = append(b.replicas, replica{node: d.listener.Addr().String(), index: i})
	}
	return b
}

func testCluster(t *testing.T, opts Options) (*Cluster, *testLog) {
	t.Helper()
	log := &testLog{}
	opts.User = "alice"
	c, err := New("nn:8020", &opts, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return c, log
}

// readStream opens the first replica and reads until an error or the end.
func readStream(t *testing.T, b *block, offset int64) ([]byte, error) {
	t.Helper()
	c, _ := testCluster(t, Options{})
	s, err := c.openBlock(context.Background(), b, b.replicas[0], offset, atOnce, false)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var got []byte
	for offset+int64(len(got)) < b.length {
		if err := s.next(atOnce); err != nil {
			return got, err
		}
		got, s.data = append(got, s.data...), nil
	}
	return got, nil
}

func TestStream(t *testing.T) {
	data := logText(20_000)
	for _, kind := range []int{1, 2} {
		for _, chunk := range []int{1, 16, 512, 4096} {
			for _, packetBytes := range []int{4096, 64 << 10, 512 << 10} { // the last is larger than the buffer
				for _, offset := range []int64{0, 1, 4095, 100_000, int64(len(data)) - 1} {
					if chunk == 1 && packetBytes > 4096 {
						continue
					}
					d := startFakeDataNode(t, serve(data, kind, chunk, packetBytes))
					got, err := readStream(t, testBlock(len(data), d), offset)
					if err != nil || !bytes.Equal(got, data[offset:]) {
						t.Fatalf("checksum %d, chunks of %d, packets of %d, from %d: %d bytes, %v", kind, chunk, packetBytes, offset, len(got), err)
					}
				}
			}
		}
	}
}

// Whatever a DataNode sends, the stream hands out good bytes or says what was
// wrong; nothing that it sends makes it allocate or wait without a bound.
func TestStreamFaults(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 100) // 1600 bytes, four chunks
	flipped := bytes.Clone(packet(0, data, 2, 512))
	flipped[len(flipped)-len(data)+1100] ^= 1 // in the third chunk
	send := func(pieces ...[]byte) func(net.Conn, int64) {
		return func(w net.Conn, offset int64) {
			accept(w, offset, 2, 512)
			_, _ = w.Write(bytes.Join(pieces, nil)) // the client may have hung up
		}
	}
	answer := func(status string) func(net.Conn, int64) {
		return func(w net.Conn, _ int64) {
			resp := wire.New("BlockOpResponseProto")
			resp.SetEnum("status", status)
			b, _ := wire.AppendDelimited(nil, resp.Set("message", "why"))
			_, _ = w.Write(b) // as above
		}
	}
	good := packet(0, data[:1024], 2, 512)
	for name, tc := range map[string]struct {
		script func(net.Conn, int64)
		kind   faultKind
		good   int
	}{
		"flipped bit":         {send(flipped), bad, 1024},
		"hung up":             {send(good, packet(1024, data[1024:], 2, 512)[:100]), brokenOff, 1024},
		"ends early":          {send(good, packet(1024, nil, 2, 512)), bad, 1024},
		"a gap":               {send(good, packet(1030, data[1030:], 2, 512)), bad, 1024},
		"twice the same":      {send(good, good), bad, 1024},
		"huge packet":         {send(good, []byte{0x7F, 0xFF, 0xFF, 0xFF, 0, 3, 1, 2, 3}), bad, 1024},
		"negative packet":     {send(good, []byte{0, 0, 0, 1, 0, 3, 1, 2, 3}), bad, 1024},
		"header cut off":      {send(good, []byte{0, 0, 0, 4, 0, 3, 9, 2, 3}), bad, 1024},
		"negative length":     {send(good, append([]byte{0, 0, 0, 4, 0, 25}, packetHeaderBytes(1024, -1)...)), bad, 1024},
		"without checksums":   {func(w net.Conn, o int64) { accept(w, o, 0, 512) }, unverified, 0},
		"chunks of nothing":   {func(w net.Conn, o int64) { accept(w, 0, 2, 1<<30) }, bad, 0},
		"refused":             {answer("ERROR"), refused, 0},
		"stale token":         {answer("ERROR_ACCESS_TOKEN"), stale, 0},
		"hung up at once":     {func(net.Conn, int64) {}, unreachable, 0},
		"a message too large": {func(w net.Conn, _ int64) { _, _ = w.Write(bytes.Repeat([]byte{0xFF}, 20)) }, unreachable, 0},
	} {
		d := startFakeDataNode(t, tc.script)
		got, err := readStream(t, testBlock(len(data), d), 0)
		var fault *replicaError
		if !errors.As(err, &fault) || fault.kind != tc.kind || !bytes.Equal(got, data[:tc.good]) {
			t.Errorf("%s: %d bytes, %v; want %d and a fault of kind %d", name, len(got), err, tc.good, tc.kind)
		}
	}
}

// A packet that was read in part is read on after a deadline.
func TestStreamResumes(t *testing.T) {
	data := logText(1000)
	goOn := make(chan struct{})
	d := startFakeDataNode(t, func(w net.Conn, offset int64) {
		accept(w, offset, 2, 512)
		p := packet(0, data, 2, 512)
		_, _ = w.Write(p[:len(p)/2]) // the test sees what is missing
		<-goOn
		_, _ = w.Write(p[len(p)/2:])
	})
	c, _ := testCluster(t, Options{})
	b := testBlock(len(data), d)
	s, err := c.openBlock(context.Background(), b, b.replicas[0], 0, atOnce, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for range 3 {
		if err := s.next(10 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	close(goOn)
	if err := s.next(atOnce); err != nil || !bytes.Equal(s.data, data) {
		t.Errorf("%d bytes, %v", len(s.data), err)
	}
}

// testReader reads a file of one block whose place is known.
func testReader(c *Cluster, b *block) *reader {
	blocks := &fileBlocks{c: c, f: fsys.File{URI: "hdfs://nn:8020/a", Size: b.length}, path: "/a"}
	blocks.mu.blocks = []*block{b}
	return c.newReader(context.Background(), blocks, 0)
}

// A connection that the DataNode ended in mid-block, as it does when nobody
// read it for long, is dialed again; nobody is blamed.
func TestReaderRedials(t *testing.T) {
	data := logText(20_000)
	cut := func(w net.Conn, offset int64) {
		at := accept(w, offset, 2, 512)
		_, _ = w.Write(packet(at, data[at:at+8192], 2, 512)) // the test sees what is missing
	}
	d := startFakeDataNode(t, cut, cut, cut, serve(data, 2, 512, 64<<10))
	c, log := testCluster(t, Options{RetryMs: 1})
	got, err := io.ReadAll(testReader(c, testBlock(len(data), d)))
	if err != nil || !bytes.Equal(got, data) || d.dialed.Load() != 4 || log.String() != "" {
		t.Errorf("%d bytes, %v, after %d connections\n%s", len(got), err, d.dialed.Load(), log)
	}
}

// A DataNode that refuses even new tokens, as one whose clock is wrong does, is left for another
// one, and nobody is told that its replica is bad.
func TestReaderTokenRefused(t *testing.T) {
	data := logText(20_000)
	refuses := startFakeDataNode(t, func(conn net.Conn, _ int64) {
		b, err := wire.AppendDelimited(nil, wire.New("BlockOpResponseProto").SetEnum("status", "ERROR_ACCESS_TOKEN"))
		if err != nil {
			panic(err)
		}
		_, _ = conn.Write(b) // the test sees what is missing
	})
	d := startFakeDataNode(t, serve(data, 2, 512, 64<<10))
	nameNode, asked := blackHole(t)
	c, log := testCluster(t, Options{TimeoutMs: 1000, RetryMs: NoRetry})
	c.nameNodes.init([]string{nameNode})
	r := testReader(c, testBlock(len(data), refuses, d))
	r.renewed = true
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, data) || c.nodes.failedAt(refuses.listener.Addr().String()).IsZero() {
		t.Errorf("%d bytes, %v\n%s", len(got), err, log)
	}
	if asked.Load() > 0 {
		t.Errorf("the replica was reported as bad:\n%s", log)
	}
}

// A DataNode that was left because it did not answer soon is asked again, without any
// retry, when the other replica turns out to be bad.
func TestReaderReconsiders(t *testing.T) {
	t.Parallel()
	data := logText(20_000)
	flipped := bytes.Clone(packet(0, data, 2, 512))
	flipped[len(flipped)-1] ^= 1
	slow := startFakeDataNode(t, func(conn net.Conn, _ int64) {
		_, _ = io.Copy(io.Discard, conn) // until the reader hangs up
	}, serve(data, 2, 512, 64<<10))
	broken := startFakeDataNode(t, func(conn net.Conn, offset int64) {
		accept(conn, offset, 2, 512)
		_, _ = conn.Write(flipped) // the reader may have seen enough
	})
	c, log := testCluster(t, Options{TimeoutMs: 60_000, RetryMs: NoRetry})
	c.nameNodes.init([]string{refusing(t)}) // it is told of the bad replica
	got, err := io.ReadAll(testReader(c, testBlock(len(data), slow, broken)))
	if err != nil || !bytes.Equal(got, data) || slow.dialed.Load() != 2 || broken.dialed.Load() != 1 {
		t.Errorf("%d bytes, %v, after %d and %d connections\n%s", len(got), err, slow.dialed.Load(), broken.dialed.Load(), log)
	}
	// Once each was given the whole time limit, the attempt has failed.
	hung := func(conn net.Conn, _ int64) { _, _ = io.Copy(io.Discard, conn) }
	first, second := startFakeDataNode(t, hung), startFakeDataNode(t, hung)
	c, log = testCluster(t, Options{TimeoutMs: 6000, RetryMs: NoRetry})
	_, err = io.ReadAll(testReader(c, testBlock(len(data), first, second)))
	until(t, "the connections are counted", func() bool { return first.dialed.Load() > 1 && second.dialed.Load() > 0 })
	if !errors.Is(err, fsys.ErrUnavailable) || first.dialed.Load() != 2 || second.dialed.Load() != 1 {
		t.Errorf("%v, after %d and %d connections\n%s", err, first.dialed.Load(), second.dialed.Load(), log)
	}
}

// TestHedgeHungUp checks that a replica whose DataNode hangs up once, when it is asked because another
// one is slow, is not reported as bad.
func TestHedgeHungUp(t *testing.T) {
	t.Parallel()
	data := logText(20_000)
	goOn := make(chan struct{})
	slow := startFakeDataNode(t, func(w net.Conn, offset int64) {
		at := accept(w, offset, 2, 512)
		<-goOn
		_, _ = w.Write(packet(at, data[at:], 2, 512)) // the test sees what is missing
	})
	restarts := startFakeDataNode(t, func(w net.Conn, offset int64) {
		accept(w, offset, 2, 512)
		close(goOn)
	}, serve(data, 2, 512, 64<<10))
	nameNode, asked := blackHole(t)
	c, log := testCluster(t, Options{TimeoutMs: 60_000, RetryMs: NoRetry})
	c.nameNodes.init([]string{nameNode})
	got, err := io.ReadAll(testReader(c, testBlock(len(data), slow, restarts)))
	if err != nil || !bytes.Equal(got, data) || restarts.dialed.Load() != 1 || c.nodes.failedAt(restarts.listener.Addr().String()).IsZero() {
		t.Errorf("%d bytes, %v, after %d connections to the other DataNode\n%s", len(got), err, restarts.dialed.Load(), log)
	}
	if asked.Load() > 0 {
		t.Errorf("the replica was reported as bad:\n%s", log)
	}
}
