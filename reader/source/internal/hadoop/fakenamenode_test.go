package hadoop

import (
	"bufio"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// startFakeNameNode starts a NameNode and returns its address. It answers one call at a time, with what
// answer sets in resp, or with the exception that answer returns.
func startFakeNameNode(t *testing.T, answer func(method string, req, resp wire.Message) (exception string)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer func() { _ = conn.Close() }() // everything was written
				answerCalls(t, conn, func(method string, req, resp wire.Message) string {
					mu.Lock()
					defer mu.Unlock()
					return answer(method, req, resp)
				})
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		connections.Wait()
	})
	return l.Addr().String()
}

// answerCalls answers the calls of a connection until the client closes it.
func answerCalls(t *testing.T, conn net.Conn, answer func(method string, req, resp wire.Message) string) {
	r := bufio.NewReader(conn)
	if _, err := r.Discard(7); err != nil { // "hrpc", version, class, protocol
		return
	}
	for {
		header, method := wire.New("RpcRequestHeaderProto"), wire.New("RequestHeaderProto")
		if _, err := r.Discard(4); err != nil || wire.ReadDelimited(r, header) != nil { // the length is not needed
			return
		}
		call := header.Value("callId").Int()
		if call < 0 { // the first message, which describes the connection
			if wire.ReadDelimited(r, wire.New("IpcConnectionContextProto")) != nil {
				return
			}
			continue
		}
		if wire.ReadDelimited(r, method) != nil {
			return
		}
		name := method.Text("methodName")
		title := strings.ToUpper(name[:1]) + name[1:]
		req, resp := wire.New(title+"RequestProto"), wire.New(title+"ResponseProto")
		if wire.ReadDelimited(r, req) != nil {
			return
		}
		exception := ""
		if name == "getServerDefaults" {
			resp.Make("serverDefaults").Set("blockSize", uint64(1<<20)).Set("bytesPerChecksum", uint32(512)).Set("writePacketSize", uint32(64<<10)).
				Set("replication", uint32(1)).Set("fileBufferSize", uint32(4096))
		} else {
			exception = answer(name, req, resp)
		}
		status := wire.New("RpcResponseHeaderProto").Set("callId", uint32(call)).SetEnum("status", "SUCCESS")
		if exception != "" {
			status.SetEnum("status", "ERROR").Set("exceptionClassName", exception)
		}
		b, err := wire.AppendDelimited(make([]byte, 4), status)
		if err == nil && exception == "" {
			b, err = wire.AppendDelimited(b, resp)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		_, _ = conn.Write(b) // the test sees what is missing
	}
}

// setStatus makes an HdfsFileStatusProto that of a file or directory.
func setStatus(status wire.Message, kind, name string, size int64, modified time.Time) {
	status.SetEnum("fileType", kind).Set("path", []byte(name)).Set("length", uint64(size)).Set("owner", "alice").Set("group", "alice").
		Set("modification_time", uint64(modified.UnixMilli())).Set("access_time", uint64(0))
	status.Make("permission").Set("perm", uint32(0o644))
}
