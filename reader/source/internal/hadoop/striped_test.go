package hadoop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// stripedReader reads data as the only block group of a file, whose internal blocks DataNodes serve as fault
// says, connection by connection; nil: they serve it.
func stripedReader(t *testing.T, code *coding, data []byte, opts Options, faults func(unit int, bytes []byte) []func(net.Conn, int64)) (*reader, []*fakeDataNode) {
	t.Helper()
	b := &block{name: "blk_-16_1", length: int64(len(data)), code: code, wanted: code.parity + 1}
	shards := make([][]byte, code.data+code.parity)
	var nodes []*fakeDataNode
	longest := code.length(b.length, 0)
	for u := range shards {
		shards[u] = make([]byte, longest)
	}
	for offset := int64(0); offset < b.length; {
		u, at, left := code.place(b, offset)
		offset += int64(copy(shards[u][at:], data[offset:offset+left]))
	}
	decoder, err := code.decoder()
	if err == nil {
		err = decoder.Encode(shards)
	}
	if err != nil {
		t.Fatal(err)
	}
	for u, shard := range shards {
		shard = shard[:code.length(b.length, u)]
		scripts := faults(u, shard)
		if scripts == nil {
			scripts = append(scripts, serve(shard, 2, 512, 65536))
		}
		nodes = append(nodes, startFakeDataNode(t, scripts...))
		b.units = append(b.units, testBlock(len(shard), nodes[u]))
	}
	c, _ := testCluster(t, opts)
	fb := &fileBlocks{c: c, f: fsys.File{URI: "hdfs://nn:8020/f", Size: b.length}, path: "/f"}
	fb.mu.blocks = []*block{b}
	return c.newReader(context.Background(), fb, 0), nodes
}

// one is the script of a DataNode that answers all connections alike.
func one(script func(net.Conn, int64)) []func(net.Conn, int64) {
	return []func(net.Conn, int64){script}
}

func hangUp(net.Conn, int64) {}

// silent keeps the connection until the client closes it.
func silent(w net.Conn, _ int64) { _, _ = w.Read(make([]byte, 1)) }

// serveUntil serves the bytes of a block before end, which is a multiple of a chunk, and hangs up.
func serveUntil(block []byte, end int) func(net.Conn, int64) {
	return serve(block[:min(end, len(block))], 2, 512, 65536)
}

// TestStripedFaults checks that whichever blocks fail in whatever way, the bytes are right or the
// error says which blocks have failed.
func TestStripedFaults(t *testing.T) {
	rng := testseed.Rand(t)
	code := &coding{"rs", 3, 2, 64 << 10}
	for round := range 60 {
		data := randomBytes(rng, 1+rng.IntN(1<<20))
		bad := rng.Perm(5)[:rng.IntN(4)]
		kinds := rng.Perm(4)
		from := rng.IntN(300_000)
		r, _ := stripedReader(t, code, data, Options{RetryMs: NoRetry, TimeoutMs: 500}, func(u int, block []byte) []func(net.Conn, int64) {
			i := slices.Index(bad, u)
			if i < 0 {
				return nil
			}
			switch kinds[i] {
			case 0:
				return one(hangUp)
			case 1:
				return one(silent)
			case 2:
				return one(serveUntil(block, from/512*512))
			}
			return one(func(w net.Conn, offset int64) { // a flipped bit
				at := accept(w, offset, 2, 512)
				p := packet(at, block[at:], 2, 512)
				p[len(p)-1] ^= 1
				_, _ = w.Write(p) // the client may have hung up
			})
		})
		begin := time.Now()
		got, err := io.ReadAll(r)
		if d := time.Since(begin); d > atOnce {
			t.Errorf("round %d: took %v", round, d)
		}
		switch {
		case err == nil && bytes.Equal(got, data):
		case err != nil && len(bad) == 3 && bytes.HasPrefix(data, got):
			if none := new(blockError); !errors.As(err, &none) || len(none.lost) != 3 {
				t.Errorf("round %d: %v", round, err)
			}
		default:
			t.Errorf("round %d: %d bytes, blocks %v failed: read %d, %v", round, len(data), bad, len(got), err)
		}
		_ = r.Close() // it was read
	}
}

// TestStripedConnections checks that a block is read through as many connections as it has uses,
// and not through one for each cell.
func TestStripedConnections(t *testing.T) {
	code := &coding{"rs", 3, 2, 64 << 10}
	data := bytes.Repeat(logText(1000), 100)
	for _, lost := range []int{-1, 1} {
		r, nodes := stripedReader(t, code, data, Options{RetryMs: NoRetry}, func(u int, _ []byte) []func(net.Conn, int64) {
			if u == lost {
				return one(hangUp)
			}
			return nil
		})
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		for u, want := range map[int][]int32{-1: {1, 1, 1, 0, 0}, 1: {2, 1, 2, 1, 0}}[lost] {
			if n := nodes[u].dialed.Load(); n != want {
				t.Errorf("block %d lost: block %d was dialed %d times, want %d", lost, u, n, want)
			}
		}
	}
}

// TestStripedComesBack checks that a block that was given up because its DataNode did not answer is
// read after all, from the current position on, if other blocks fail permanently.
func TestStripedComesBack(t *testing.T) {
	code := &coding{"rs", 3, 2, 64 << 10}
	data := bytes.Repeat(logText(1000), 50)
	r, nodes := stripedReader(t, code, data, Options{RetryMs: NoRetry, TimeoutMs: 4000}, func(u int, block []byte) []func(net.Conn, int64) {
		refuse := func(w net.Conn, _ int64) {
			answer, err := wire.AppendDelimited(nil, wire.New("BlockOpResponseProto").SetEnum("status", "ERROR"))
			if err != nil {
				panic(err)
			}
			_, _ = w.Write(answer) // the test sees what is missing
		}
		switch u {
		case 0:
			return []func(net.Conn, int64){silent, serve(block, 2, 512, 65536)}
		case 3:
			return []func(net.Conn, int64){serveUntil(block, 300<<10), refuse}
		case 4:
			return one(refuse)
		}
		return nil
	})
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if n := nodes[0].dialed.Load(); n != 2 {
		t.Errorf("the silent DataNode was dialed %d times", n)
	}
}

// TestStripedAllocations checks that an intact group is read without an allocation for each cell.
func TestStripedAllocations(t *testing.T) {
	code := &coding{"rs", 3, 2, 64 << 10}
	const cells = 600
	r, _ := stripedReader(t, code, bytes.Repeat([]byte("0123456789abcdef"), cells<<12), Options{}, func(_ int, block []byte) []func(net.Conn, int64) {
		var all []byte
		for at := 0; at < len(block); at += 64 << 10 {
			all = append(all, packet(int64(at), block[at:min(at+64<<10, len(block))], 2, 512)...)
		}
		return one(func(w net.Conn, offset int64) {
			accept(w, offset, 2, 512)
			_, _ = w.Write(all) // the client reads as far as it wants
		})
	})
	buf := make([]byte, 192<<10) // a stripe, which opens all connections
	var before, after runtime.MemStats
	for i := range cells / 3 {
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		if _, err := io.ReadFull(r, buf); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > cells/4 {
		t.Errorf("%d allocations for %d cells", n, cells)
	}
}
