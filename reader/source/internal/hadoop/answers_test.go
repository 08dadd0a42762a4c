package hadoop

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// answering is an address that reads something and then says what it is given.
func answering(t *testing.T, answer []byte) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(c).ReadByte()
			_, _ = c.Write(answer)
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// fatal is an answer that refuses the connection.
func fatal(t *testing.T, call int32, exception, message string) []byte {
	t.Helper()
	header := wire.New("RpcResponseHeaderProto").Set("callId", uint32(call)).SetEnum("status", "FATAL").
		Set("exceptionClassName", exception).Set("errorMsg", message)
	b, err := wire.AppendDelimited(make([]byte, 4), header)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// Where no NameNode listens, or one that refuses the connection, the error says so at once.
func TestAnswers(t *testing.T) {
	const security = "org.apache.hadoop.security."
	for name, tc := range map[string]struct {
		answer []byte
		kind   error
		words  []string
	}{
		"web":  {[]byte("HTTP/1.1 400 Illegal character CNTL=0x0\r\n\r\n"), fsys.ErrUnavailable, []string{`"HTTP"`, "web pages"}},
		"TLS":  {[]byte("\x15\x03\x03\x00\x02\x02\x0a"), fsys.ErrUnavailable, []string{"is not a NameNode"}},
		"user": {fatal(t, -3, security+"authorize.AuthorizationException", "User alice is not authorized for protocol"), fsys.ErrPermission, []string{"User alice is not authorized", "user alice may not"}},
		"Kerberos": {fatal(t, -33, security+"AccessControlException", "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]"), fsys.ErrPermission,
			[]string{"SIMPLE authentication is not enabled", "does the cluster require Kerberos?"}},
		"version": {fatal(t, -1, "org.apache.hadoop.ipc.RPC$VersionMismatch", "Server IPC version 9 cannot communicate with client version 4"), fsys.ErrUnavailable, []string{"IPC version 9"}},
	} {
		opts := Options{User: "alice"}
		if name == "version" {
			opts.RetryMs = 10
		}
		s, _ := hdfsSources(t, opts)
		uri := "hdfs://" + answering(t, tc.answer) + "/x"
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{uri})
		wantError(t, err, tc.kind, atOnce, begin, append(tc.words, uri)...)
	}
}

// TestAnswersInParts hands over answers byte by byte, of which only the last one refuses.
func TestAnswersInParts(t *testing.T) {
	success, err := wire.AppendDelimited(make([]byte, 4), wire.New("RpcResponseHeaderProto").Set("callId", uint32(1)).SetEnum("status", "SUCCESS"))
	if err != nil {
		t.Fatal(err)
	}
	success = append(success, make([]byte, 3*maxHeaderBytes)...)
	binary.BigEndian.PutUint32(success, uint32(len(success)-4))
	all := append(append(success, 0, 0, 0, 0), fatal(t, -3, "x", "y")...)
	for _, step := range []int{1, 3, 5000, len(all)} {
		var a answers
		var err error
		for rest := all; len(rest) > 0 && err == nil; rest = rest[min(step, len(rest)):] {
			if err = a.saw(rest[:min(step, len(rest))]); err != nil && len(rest) > step {
				t.Errorf("in steps of %d: %v with %d bytes to come", step, err, len(rest)-step)
			}
		}
		var refused *fatalAnswer
		if !errors.As(err, &refused) || refused.exception != "x" || refused.message != "y" {
			t.Errorf("in steps of %d: %v", step, err)
		}
	}
}
