package hadoop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/login"
)

// remoteError is a NameNode's exception, as the library reports it.
type remoteError struct{ exception, message string }

func (e remoteError) Error() string     { return "call failed (" + e.exception + ")" }
func (e remoteError) Method() string    { return "call" }
func (e remoteError) Desc() string      { return "ERROR_APPLICATION" }
func (e remoteError) Exception() string { return e.exception }
func (e remoteError) Message() string   { return e.message }

func testRetrier(t *testing.T, retry time.Duration) *retrier {
	t.Helper()
	c, err := New("nn:8020", &Options{User: "alice", TimeoutMs: 100, RetryMs: int(retry.Milliseconds())}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &retrier{c: c, op: "read", path: "/a"}
}

func TestRetrierKinds(t *testing.T) {
	for _, tc := range []struct {
		err   error
		kind  error
		again bool // the first failure is retried
	}{
		{&os.PathError{Op: "stat", Path: "/a", Err: os.ErrNotExist}, fsys.ErrNotFound, false},
		{&os.PathError{Op: "stat", Path: "/a", Err: os.ErrPermission}, fsys.ErrPermission, false},
		{remoteError{"org.apache.hadoop.security.AccessControlException", "no\n\tat Java"}, fsys.ErrPermission, false},
		{remoteError{"org.apache.hadoop.ipc.StandbyException", "standby"}, fsys.ErrUnavailable, true},
		{remoteError{"org.apache.hadoop.hdfs.server.namenode.SafeModeException", "safe"}, fsys.ErrUnavailable, true},
		{remoteError{"org.apache.hadoop.ipc.RetriableException", "later"}, fsys.ErrUnavailable, true},
		{remoteError{"java.io.IOException", "could only be written to 0 of the 1 minReplication nodes"}, fsys.ErrUnavailable, true},
		{remoteError{"org.apache.hadoop.hdfs.protocol.UnresolvedPathException", "/b"}, fsys.ErrUnsupported, false},
		{remoteError{"org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException", "SSD"}, fsys.ErrUnavailable, false},
		{remoteError{"org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException", "full"}, fsys.ErrFailed, false},
		{remoteError{"org.apache.hadoop.fs.PathExistsException", "there"}, fsys.ErrFailed, false},
		{&os.PathError{Op: "mkdir", Path: "/a", Err: os.ErrExist}, fsys.ErrFailed, false},
		{&fatalAnswer{"javax.security.sasl.SaslException", "GSS initiate failed"}, fsys.ErrPermission, true},
		{&fatalAnswer{"org.apache.hadoop.security.AccessControlException", "SIMPLE authentication is not enabled."}, fsys.ErrPermission, false},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, fsys.ErrUnavailable, true},
		{fmt.Errorf("no available namenodes: %w", io.EOF), fsys.ErrUnavailable, true},
		{errors.New("no available datanodes"), fsys.ErrUnavailable, true},
		{&fsys.Error{Op: "open", URI: "x", Kind: fsys.ErrChanged}, fsys.ErrChanged, false},
		{&loginError{login.ErrNoTicket}, fsys.ErrPermission, false},
		{&loginError{fmt.Errorf("%w: x", login.ErrKDC)}, fsys.ErrUnavailable, true},
	} {
		r := testRetrier(t, 30*time.Millisecond)
		var final error
		attempts := 0
		for final == nil {
			attempts++
			final = r.wait(context.Background(), tc.err)
		}
		if !errors.Is(final, tc.kind) || attempts > 1 != tc.again {
			t.Errorf("%v: after %d attempts %v, want %v", tc.err, attempts, final, tc.kind)
		}
		if errors.Is(final, io.EOF) || errors.Is(final, io.ErrUnexpectedEOF) {
			t.Errorf("%v: %v passes for the end of the file", tc.err, final)
		}
		if strings.Contains(final.Error(), "at Java") {
			t.Errorf("%v holds a stack trace", final)
		}
	}
}

// A NameNode that has got a new key accepts a new ticket.
func TestRetrierLogin(t *testing.T) {
	for _, reached := range []bool{false, true} {
		r := testRetrier(t, time.Minute)
		r.c.reached.Store(reached)
		if v := r.classify(&fatalAnswer{"javax.security.sasl.SaslException", "GSS initiate failed"}); !v.login {
			t.Errorf("served before: %v: %+v", reached, v)
		}
	}
}

// After a login that succeeded, a failed one may be a passing fault: a keytab that is just being
// written, for example.
func TestRetrierOwnLogin(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		var err error = &loginError{errors.New("keytab: unexpected EOF")}
		if wrapped {
			err = &keyError{err: err}
		}
		for _, reached := range []bool{false, true} {
			r := testRetrier(t, time.Minute)
			r.c.reached.Store(reached)
			if v := r.classify(err); v.kind != fsys.ErrPermission || v.attempts == 0 != reached {
				t.Errorf("%v; served before: %v: %+v", err, reached, v)
			}
		}
	}
}

func TestRetrierCancel(t *testing.T) {
	r := testRetrier(t, time.Hour)
	r.c.reached.Store(true) // else it gives up sooner
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	time.AfterFunc(20*time.Millisecond, func() { cancel(stop) })
	begin := time.Now()
	var err error
	for err == nil {
		err = r.wait(ctx, syscall.ECONNREFUSED)
	}
	if err != stop || time.Since(begin) > atOnce {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
}

// Progress starts the retry time anew.
func TestRetrierProgress(t *testing.T) {
	r := testRetrier(t, 100*time.Millisecond)
	for range 4 {
		if err := r.wait(context.Background(), syscall.ECONNRESET); err != nil {
			t.Fatal(err)
		}
		r.succeeded()
	}
}
