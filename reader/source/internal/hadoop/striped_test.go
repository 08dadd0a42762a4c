package hadoop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/reader/source/internal/fsys"
)

// stripedReader reads data as the only block group of a file, whose internal blocks DataNodes serve as fault
// says; nil: they serve it.
func stripedReader(t *testing.T, code *coding, data []byte, opts Options, fault func(unit int, bytes []byte) func(net.Conn, int64)) *reader {
	t.Helper()
	b := &block{name: "blk_-16_1", length: int64(len(data)), code: code, wanted: code.parity + 1}
	shards := make([][]byte, code.data+code.parity)
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
		script := serve(shard, 2, 512, 65536)
		if fault != nil {
			if f := fault(u, shard); f != nil {
				script = f
			}
		}
		b.units = append(b.units, testBlock(len(shard), startFakeDataNode(t, script)))
	}
	c, _ := testCluster(t, opts)
	fb := &fileBlocks{c: c, f: fsys.File{URI: "hdfs://nn:8020/f", Size: b.length}, path: "/f"}
	fb.mu.blocks = []*block{b}
	return c.newReader(context.Background(), fb, 0)
}

// TestStripedFaults: whichever blocks fail in whatever way, the bytes are right or the error says which failed.
func TestStripedFaults(t *testing.T) {
	rng := testseed.Rand(t)
	code := &coding{"rs", 3, 2, 64 << 10}
	for round := range 60 {
		data := randomBytes(rng, 1+rng.IntN(1<<20))
		bad := rng.Perm(5)[:rng.IntN(4)]
		kinds := rng.Perm(4)
		from := rng.IntN(300_000)
		r := stripedReader(t, code, data, Options{RetryMs: NoRetry, TimeoutMs: 500}, func(u int, block []byte) func(net.Conn, int64) {
			i := -1
			for j, b := range bad {
				if b == u {
					i = kinds[j]
				}
			}
			good := min(from/512*512, len(block))
			switch i {
			case 0: // hangs up at once
				return func(net.Conn, int64) {}
			case 1: // says nothing
				return func(w net.Conn, _ int64) { _, _ = w.Read(make([]byte, 1)) }
			case 2: // hangs up in the middle
				return func(w net.Conn, offset int64) {
					at := accept(w, offset, 2, 512)
					_, _ = w.Write(packet(at, block[min(int(at), good):good], 2, 512)) // the client may have hung up
				}
			case 3: // a flipped bit
				return func(w net.Conn, offset int64) {
					at := accept(w, offset, 2, 512)
					p := packet(at, block[at:], 2, 512)
					p[len(p)-1] ^= 1
					_, _ = w.Write(p) // as above
				}
			}
			return nil
		})
		begin := time.Now()
		got, err := io.ReadAll(r)
		if d := time.Since(begin); d > atOnce {
			t.Errorf("round %d: took %v", round, d)
		}
		switch {
		case err == nil && bytes.Equal(got, data):
		case err != nil && len(bad) == 3 && bytes.HasPrefix(data, got):
			var none *blockError
			if text := err.Error(); !errors.As(err, &none) && !strings.Contains(text, "NameNode") && !strings.Contains(text, "nn") {
				t.Errorf("round %d: %v", round, err)
			}
		default:
			t.Errorf("round %d: %d bytes, blocks %v failed: read %d, %v", round, len(data), bad, len(got), err)
		}
		_ = r.Close() // it was read
	}
}

// TestStripedAllocations: a healthy group is read without allocating for each cell.
func TestStripedAllocations(t *testing.T) {
	code := &coding{"rs", 3, 2, 64 << 10}
	const cells = 600
	r := stripedReader(t, code, bytes.Repeat([]byte("0123456789abcdef"), cells<<12), Options{}, func(_ int, block []byte) func(net.Conn, int64) {
		var all []byte
		for at := 0; at < len(block); at += 64 << 10 {
			all = append(all, packet(int64(at), block[at:min(at+64<<10, len(block))], 2, 512)...)
		}
		return func(w net.Conn, offset int64) {
			accept(w, offset, 2, 512)
			_, _ = w.Write(all) // the client reads as far as it wants
		}
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
