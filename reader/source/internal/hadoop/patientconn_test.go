package hadoop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// slowly reads few bytes at a time.
type slowly struct {
	io.Reader
	pause time.Duration
}

func (r slowly) Read(b []byte) (int, error) {
	time.Sleep(r.pause)
	return r.Reader.Read(b[:min(len(b), 4<<10)])
}

// writtenTo starts a DataNode that takes one block and acknowledges each packet, and returns the
// block. It reads as through says, and the kernel keeps little for it.
func writtenTo(t *testing.T, through func(io.Reader) io.Reader) *block {
	t.Helper()
	small := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<10) })
	}}
	l, err := small.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		err = takeBlock(conn, bufio.NewReader(through(conn)))
		if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	}()
	f := &fakeBlocks{nodes: []string{l.Addr().String()}}
	c, _ := testCluster(t, Options{})
	b, err := (&upload{c: c, call: f.call}).addBlock(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// takeBlock is the other side of writeBlock.
func takeBlock(w io.Writer, r *bufio.Reader) error {
	if _, err := r.Discard(3); err != nil {
		return err
	}
	if err := wire.ReadDelimited(r, wire.New("OpWriteBlockProto")); err != nil {
		return err
	}
	accepted := wire.New("BlockOpResponseProto")
	accepted.SetEnum("status", "SUCCESS")
	answer, err := wire.AppendDelimited(nil, accepted)
	for seqno := int64(0); err == nil; seqno++ {
		if _, err := w.Write(answer); err != nil {
			return err
		}
		var sizes [6]byte
		if _, err := io.ReadFull(r, sizes[:]); err != nil {
			return err
		}
		body := int(binary.BigEndian.Uint32(sizes[:])) - 4
		if _, err := io.CopyN(io.Discard, r, int64(body)+int64(binary.BigEndian.Uint16(sizes[4:]))); err != nil {
			return err
		}
		ack := wire.New("PipelineAckProto")
		ack.Set("seqno", seqno)
		ack.Elements("reply").Append(ack.Value("reply").List().NewElement())
		answer, err = wire.AppendDelimited(nil, ack)
		if body == 0 {
			_, err := w.Write(answer)
			return err
		}
	}
	return err
}

// TestSlowUpload checks that a block is written even if a slow line, or the limit of a job, makes
// its packets take longer than the time limit, and that a DataNode that hangs is detected.
func TestSlowUpload(t *testing.T) {
	const limit = 400 * time.Millisecond
	data := bytes.Repeat([]byte("0123456789abcdef"), 10<<10) // three packets
	all := func(r io.Reader) io.Reader { return r }
	for _, c := range []struct {
		name     string
		datanode func(io.Reader) io.Reader
		source   io.Reader
		hangs    bool
	}{
		{"fast", all, bytes.NewReader(data), false},
		{"slow line", func(r io.Reader) io.Reader { return slowly{r, limit / 10} }, bytes.NewReader(data), false},
		{"slow source", all, slowly{bytes.NewReader(data), limit / 10}, false},
		{"hanging", func(r io.Reader) io.Reader { return io.MultiReader(io.LimitReader(r, 70<<10), slowly{r, time.Hour}) }, bytes.NewReader(data), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := writtenTo(t, c.datanode)
			cluster, _ := testCluster(t, Options{TimeoutMs: int(limit / time.Millisecond)})
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			begin := time.Now()
			err := cluster.writeBlock(ctx, b, "aibox", c.source, int64(len(data)))
			if c.hangs != (err != nil) || c.hangs && (!isTimeout(err) || ctx.Err() != nil) {
				t.Errorf("after %v: %v", time.Since(begin), err)
			}
		})
	}
}
