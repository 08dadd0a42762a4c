package hadoop

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// fakeBlocks is a NameNode that has a block written to one of its DataNodes, which are addresses.
type fakeBlocks struct {
	nodes []string
	given []string // to whom a block was to be written
}

func (f *fakeBlocks) call(method string, req, resp proto.Message) error {
	if method != "addBlock" {
		return nil
	}
	var excluded []string
	for _, node := range (wire.Message{Message: req.ProtoReflect()}).List("excludeNodes") {
		excluded = append(excluded, net.JoinHostPort(node.In("id").Text("ipAddr"), strconv.FormatInt(node.In("id").Int("xferPort"), 10)))
	}
	i := slices.IndexFunc(f.nodes, func(node string) bool { return !slices.Contains(excluded, node) })
	if i < 0 {
		return errors.New("all DataNodes are excluded")
	}
	f.given = append(f.given, f.nodes[i])
	host, port, _ := net.SplitHostPort(f.nodes[i])
	n, _ := strconv.Atoi(port)
	located := wire.Message{Message: resp.ProtoReflect()}.Make("block")
	located.Make("b").Set("poolId", "BP-1").Set("blockId", uint64(len(f.given))).Set("generationStamp", uint64(1))
	located.Make("blockToken").Set("identifier", []byte{}).Set("password", []byte{}).Set("kind", "").Set("service", "")
	located.Append("locs").Make("id").Set("ipAddr", host).Set("hostName", host).Set("datanodeUuid", f.nodes[i]).Set("xferPort", uint32(n)).Set("infoPort", uint32(0)).Set("ipcPort", uint32(0))
	return nil
}

// TestUploadAfterManyFailures checks that if more DataNodes have failed lately than are tried for a
// block, for example because the network has failed, they are tried all the same. A block that no
// DataNode accepts is an error, and is not left out of the file.
func TestUploadAfterManyFailures(t *testing.T) {
	c, _ := testCluster(t, Options{})
	f := new(fakeBlocks)
	for range 2 * pipelineAttempts {
		f.nodes = append(f.nodes, refusing(t))
		c.nodes.recordFailure(f.nodes[len(f.nodes)-1])
	}
	data := []byte("text")
	u := &upload{c: c, ctx: t.Context(), call: f.call, holder: "aibox", temp: "/d/.f.tmp", data: bytes.NewReader(data), size: int64(len(data))}
	last, err := u.block(nil, 0, u.size)
	if !errors.Is(err, errNoPipeline) || last != nil {
		t.Errorf("%v, %v", last, err)
	}
	if len(f.given) != pipelineAttempts {
		t.Errorf("a block was to be written to %q", f.given)
	}
}

// TestUploadTokenRefused checks that a DataNode that does not accept a new token either is no
// longer used for the block.
func TestUploadTokenRefused(t *testing.T) {
	answer, err := wire.AppendDelimited(nil, wire.New("BlockOpResponseProto").SetEnum("status", "ERROR_ACCESS_TOKEN"))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := testCluster(t, Options{})
	refuses, other := answering(t, answer), refusing(t)
	f := &fakeBlocks{nodes: []string{refuses, other}}
	data := []byte("text")
	u := &upload{c: c, ctx: t.Context(), call: f.call, holder: "aibox", temp: "/d/.f.tmp", data: bytes.NewReader(data), size: int64(len(data))}
	if _, err := u.block(nil, 0, u.size); !errors.Is(err, errNoPipeline) {
		t.Error(err)
	}
	if want := []string{refuses, refuses, other}; !slices.Equal(f.given, want) {
		t.Errorf("a block was to be written to %q, want %q", f.given, want)
	}
}

// takeBlocks starts a DataNode that takes one packet for each block, some time after it has come.
func takeBlocks(t *testing.T, after time.Duration) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	take := func(conn net.Conn) {
		defer func() { _ = conn.Close() }() // everything was written
		r := bufio.NewReader(conn)
		if _, err := r.Discard(3); err != nil || wire.ReadDelimited(r, wire.New("OpWriteBlockProto")) != nil {
			return
		}
		answer, err := wire.AppendDelimited(nil, wire.New("BlockOpResponseProto").SetEnum("status", "SUCCESS"))
		for seqno := int64(0); err == nil; seqno++ {
			if _, err = conn.Write(answer); err != nil || seqno == 2 { // the last packet is empty
				return
			}
			var lengths [6]byte
			if _, err = io.ReadFull(r, lengths[:]); err != nil {
				return
			}
			if _, err = r.Discard(int(binary.BigEndian.Uint32(lengths[:])) - 4 + int(binary.BigEndian.Uint16(lengths[4:]))); err != nil {
				return
			}
			time.Sleep(after)
			ack := wire.New("PipelineAckProto").Set("seqno", seqno)
			ack.Elements("reply").Append(protoreflect.ValueOfEnum(0))
			answer, err = wire.AppendDelimited(nil, ack)
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go take(conn)
		}
	}()
	return l.Addr().String()
}

// TestUploadRetryTime checks that the time in which an upload works is no time for retries, so that it
// outlasts another fault of the NameNode. An upload that always fails comes to an end.
func TestUploadRetryTime(t *testing.T) {
	const retry = 100 * time.Millisecond
	for name, tc := range map[string]struct {
		failures, uploads int
		want              error
	}{
		"two faults": {2, 3, nil},
		"every time": {1000, 1 + uploadRenewals, fsys.ErrUnavailable},
	} {
		f := &fakeBlocks{nodes: []string{takeBlocks(t, retry)}}
		failures := 0
		c, log := testCluster(t, Options{RetryMs: int(retry.Milliseconds())})
		c.nameNodes.init([]string{startFakeNameNode(t, func(method string, req, resp wire.Message) string {
			switch method {
			case "getFileInfo":
				setStatus(resp.Make("fs"), "IS_DIR", "", 0, time.Now())
			case "addBlock":
				_ = f.call(method, req.Interface(), resp.Interface()) // without a block, the upload fails
				resp.Make("block").Set("offset", uint64(0)).Set("corrupt", false)
			case "complete":
				if failures < tc.failures {
					failures++
					return "org.apache.hadoop.ipc.RetriableException"
				}
				resp.Set("result", true)
			case "delete":
				resp.Set("result", true)
			}
			return ""
		})})
		t.Cleanup(c.Close)
		w := &writer{ctx: t.Context(), c: c, path: "/d/f", data: bytes.NewReader([]byte("text")), size: 4, perm: fsys.Perm}
		if err := w.Prepare(); !errors.Is(err, tc.want) || len(f.given) != tc.uploads {
			t.Errorf("%s: %v after %d uploads\n%s", name, err, len(f.given), log)
		}
	}
}
