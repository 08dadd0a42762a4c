package hadoop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/login"
	"aibox/reader/source/internal/hadoop/internal/sasl"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// retrier decides, after each failure of one operation, whether and when to
// try again.
type retrier struct {
	c        *Cluster
	op, path string

	attempts int       // failed ones in a row
	since    time.Time // when the time for retries began

	pooled       bool // the last attempt used an old session, whose connection may have been closed
	lostNameNode bool // the NameNode of the last attempt stopped serving
}

// acquire returns a session for the next attempt.
func (r *retrier) acquire(ctx context.Context) (*session, error) {
	var failing time.Time
	if r.attempts > 0 {
		failing = r.since
	}
	s, err := r.c.acquire(ctx, failing)
	if err == nil {
		r.pooled = s.pooled
	}
	return s, err
}

// succeeded notes that the operation has made progress.
func (r *retrier) succeeded() { r.attempts = 0 }

// The pause between attempts is 50 ms at first and doubles up to 3 s. A NameNode needs
// seconds to restart or fail over, and sixteen readers that ask every 3 s do not
// disturb it.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 3 * time.Second
)

// wait returns the error to report, or, after a pause, nil if the operation should be tried again.
func (r *retrier) wait(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var none *noNameNodeError
	if errors.As(err, &none) {
		r.pooled, r.lostNameNode = false, false // there was no session
	} else if isStandby(err) {
		r.lostNameNode = true
	}
	now := time.Now()
	if r.attempts == 0 {
		// The time in which no NameNode answered counts as time for retries.
		switch r.since = now; {
		case none != nil:
			r.since = none.begin
		case isTimeout(err):
			r.since = now.Add(-r.c.timeout)
		}
	}
	r.attempts++
	v := r.classify(err)
	err = withMessage(err)
	if v.final != nil {
		return v.final
	}
	hopeless := v.attempts > 0 && r.attempts >= v.attempts
	if r.attempts == 1 && !hopeless && r.freeRetry(err) {
		return nil
	}
	if hopeless || now.Sub(r.since) >= r.c.retry {
		if r.attempts > 1 && v.kind == fsys.ErrUnavailable {
			err = fmt.Errorf("%w, after %d attempts in %.1f s", err, r.attempts, now.Sub(r.since).Seconds())
		}
		return &fsys.Error{Op: r.op, URI: r.c.URI(r.path), Kind: v.kind, Err: hideEOF(err), Hint: v.hint}
	}

	if r.c.krb != nil && v.login {
		r.c.krb.Forget()
	}
	pause := min(minBackoff<<min(r.attempts-1, 10), maxBackoff)
	pause += rand.N(pause / 4) // readers that failed together try again at different times
	pause = min(pause, time.Until(r.since.Add(r.c.retry))+time.Millisecond)
	r.c.log.Warn("HDFS: trying again", "op", r.op, "uri", r.c.URI(r.path), "attempt", r.attempts, "pause", pause, "error", err)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// freeRetry reports whether a first failure says nothing about the cluster, so that the operation
// is tried again at once, even with NoRetry: the connection was an old one that the other side had
// closed, or there is another NameNode to ask.
func (r *retrier) freeRetry(err error) bool {
	if r.lostNameNode && len(r.c.nameNodes.addresses) > 1 {
		return true
	}
	return r.pooled && !isTimeout(err)
}

// hideEOF keeps the end of a connection from being taken for the end of the file: a
// caller that asks errors.Is(err, io.EOF) must not believe that it has read the whole
// file.
func hideEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("connection closed by the other side: %v", err)
	}
	return err
}

// withMessage adds the first line of a NameNode's message to the library's error, which has only
// the name of the Java exception.
func withMessage(err error) error {
	var remote hdfs.Error
	if !errors.As(err, &remote) {
		return err
	}
	line, _, _ := strings.Cut(remote.Message(), "\n")
	return fmt.Errorf("%w: %s", err, line)
}

// verdict says how to treat an error.
type verdict struct {
	kind     error
	hint     string
	final    error // report this error unchanged
	attempts int   // give up after this many attempts; 0: when the time is used up
	login    bool  // log in anew before the next attempt
}

// exceptionKinds lists Java exceptions of the NameNode after which a retry is useless.
var exceptionKinds = map[string]error{
	"java.io.FileNotFoundException":                                       fsys.ErrNotFound,
	"java.lang.UnsupportedOperationException":                             fsys.ErrUnsupported,
	"org.apache.hadoop.fs.InvalidPathException":                           fsys.ErrNotFound,
	"org.apache.hadoop.fs.ParentNotDirectoryException":                    fsys.ErrNotFound,
	"org.apache.hadoop.fs.PathIsNotDirectoryException":                    fsys.ErrNotFound,
	"org.apache.hadoop.fs.permission.AccessControlException":              fsys.ErrPermission,
	"org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException":        fsys.ErrUnsupported,
	"org.apache.hadoop.hdfs.protocol.DSQuotaExceededException":            fsys.ErrUnavailable,
	"org.apache.hadoop.hdfs.protocol.NSQuotaExceededException":            fsys.ErrUnavailable,
	"org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException": fsys.ErrUnavailable,
	"org.apache.hadoop.hdfs.protocol.QuotaExceededException":              fsys.ErrUnavailable,
	"org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException":      fsys.ErrFailed,
	"org.apache.hadoop.hdfs.protocol.UnresolvedPathException":             fsys.ErrUnsupported,
	"org.apache.hadoop.ipc.RpcNoSuchMethodException":                      fsys.ErrUnsupported,
	"org.apache.hadoop.ipc.RpcNoSuchProtocolException":                    fsys.ErrUnsupported,
	"org.apache.hadoop.security.AccessControlException":                   fsys.ErrPermission,
	"org.apache.hadoop.security.authorize.AuthorizationException":         fsys.ErrPermission,
}

// isUnsupported reports whether err says that a NameNode or a router does not offer the call.
func isUnsupported(err error) bool {
	var remote hdfs.Error
	return errors.As(err, &remote) && exceptionKinds[remote.Exception()] == fsys.ErrUnsupported
}

// classifyException classifies the exceptions of a NameNode.
func (r *retrier) classifyException(exception, message string) verdict {
	kind, ok := exceptionKinds[exception]
	switch {
	case strings.Contains(message, "authentication is not enabled"):
		return verdict{kind: fsys.ErrPermission, attempts: 1,
			hint: "does the cluster require Kerberos? Set data.hdfs.kerberos_principal and kerberos_keytab, or data.hdfs.conf_dir"}
	case strings.HasSuffix(exception, ".SaslException"):
		return r.loginRefused(false)
	case kind == fsys.ErrPermission:
		return verdict{kind: kind, attempts: 1, hint: r.whoMayNot()}
	case strings.HasSuffix(exception, ".UnresolvedPathException"):
		return verdict{kind: kind, attempts: 1, hint: "the path leads through a symbolic link, which Hadoop does not follow either: name its target"}
	case strings.HasSuffix(exception, ".UnknownCryptoProtocolVersionException"):
		return verdict{kind: kind, attempts: 1, hint: "it is in an encryption zone of a kind that aibox does not support: write to another directory, and copy the file into the zone with hdfs dfs -cp"}
	case ok:
		return verdict{kind: kind, attempts: 1}
	case strings.HasPrefix(exception, "org.apache.hadoop.fs."), strings.HasPrefix(exception, "org.apache.hadoop.hdfs.protocol.FSLimitException"):
		return verdict{kind: fsys.ErrFailed, attempts: 1} // what was asked for cannot be done
	case strings.Contains(strings.ToLower(message), "safe mode"):
		return verdict{kind: fsys.ErrUnavailable, hint: "the NameNode is starting, lacks blocks or space, or is under maintenance; `hdfs dfsadmin -safemode get` shows whether it is still in safe mode"}
	}
	return verdict{kind: fsys.ErrUnavailable}
}

func (r *retrier) classify(err error) verdict {
	var own *fsys.Error
	var corrupt *fsys.CorruptError
	if errors.As(err, &own) || errors.As(err, &corrupt) {
		return verdict{final: err}
	}
	if v, ok := r.classifyBlock(err); ok {
		return v
	}
	if v, ok := r.classifyKey(err); ok {
		return v
	}
	if v, ok := r.classifyLogin(err); ok {
		return v
	}
	var remote hdfs.Error
	if errors.As(err, &remote) {
		return r.classifyException(remote.Exception(), remote.Message())
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return verdict{kind: fsys.ErrNotFound, attempts: 1}
	case errors.Is(err, os.ErrPermission):
		return verdict{kind: fsys.ErrPermission, attempts: 1, hint: r.whoMayNot()}
	case errors.Is(err, os.ErrExist), errors.Is(err, os.ErrInvalid), errors.Is(err, syscall.ENOTEMPTY):
		return verdict{kind: fsys.ErrFailed, attempts: 1}
	case errors.Is(err, wire.ErrLibraryChanged):
		return verdict{kind: fsys.ErrUnsupported, attempts: 1}
	}
	if v, ok := r.classifyKerberos(err); ok {
		return v
	}

	v := verdict{kind: fsys.ErrUnavailable}
	var none *noNameNodeError
	if errors.As(err, &none) {
		v.hint = "is HDFS running, and is this the address of its NameNode?"
		if len(none.errs) > 1 {
			v.hint = "is HDFS running, and are these the addresses of its NameNodes?"
		}
		if none.all(func(err error) bool { return errors.Is(err, errNoNameNode) }) {
			v.hint = "is this the port of the NameNode for clients (dfs.namenode.rpc-address, usually 8020 or 9000), and not that of its web pages?"
			v.attempts = 1
		} else if none.all(isUnknownHost) && !r.c.reached.Load() {
			v.attempts = 1
			v.hint = "there is no such host; a name service needs data.hdfs.conf_dir with its hdfs-site.xml"
		} else if none.all(isStandby) {
			v.hint = "none of its NameNodes is active; `hdfs haadmin -getAllServiceState` lists them"
		}
	}
	return v
}

// whoMayNot returns the hint for a refused permission.
func (r *retrier) whoMayNot() string {
	who := "user " + r.c.conf.base.User
	if r.c.krb != nil {
		who = r.c.krb.Who()
	}
	what := "read"
	if r.op != "open" && r.op != "read" && r.op != "list" {
		what = "write"
	}
	return fmt.Sprintf("%s may not %s it: ask its owner, or log in as another user with the settings in data.hdfs", who, what)
}

// classifyLogin classifies the errors of our own logins.
func (r *retrier) classifyLogin(err error) (verdict, bool) {
	var failed *loginError
	switch {
	case !errors.As(err, &failed):
		return verdict{}, false
	case errors.Is(err, login.ErrKDC):
		return verdict{kind: fsys.ErrUnavailable, hint: "is the KDC of krb5.conf running?"}, true
	case r.c.reached.Load():
		// An earlier login succeeded. Kinit may be about to renew the ticket, or the keytab or krb5.conf
		// is just being replaced.
		return verdict{kind: fsys.ErrPermission}, true
	case errors.Is(err, os.ErrNotExist):
		return verdict{kind: fsys.ErrConfig, attempts: 1}, true
	}
	return verdict{kind: fsys.ErrPermission, attempts: 1}, true
}

// classifyKerberos classifies the errors of the library's logins at NameNodes, which it
// returns as text.
func (r *retrier) classifyKerberos(err error) (verdict, bool) {
	text := err.Error()
	switch {
	case strings.Contains(text, "kerberos authentication not supported by namenode"):
		return verdict{kind: fsys.ErrConfig, attempts: 1,
			hint: "the cluster does not use Kerberos: remove the kerberos settings"}, true
	case errors.Is(err, login.ErrUnknownService):
		return verdict{kind: fsys.ErrConfig, attempts: 1,
			hint: "set dfs.namenode.kerberos.principal in hdfs-site.xml as on the cluster, and name NameNodes by their full host names"}, true
	case strings.Contains(text, "SASL handshake"):
		return r.loginRefused(strings.Contains(text, "EOF") || strings.Contains(text, "timeout") || strings.Contains(text, "reset")), true
	}
	return verdict{}, false
}

// loginRefused classifies a failed login at a NameNode. goingDown says that the NameNode may be
// shutting down. New tickets may help, for example after the NameNode has got a new key.
func (r *retrier) loginRefused(goingDown bool) verdict {
	if goingDown || r.c.reached.Load() {
		return verdict{kind: fsys.ErrUnavailable, login: true, hint: "the NameNode refused the Kerberos login"}
	}
	return verdict{kind: fsys.ErrPermission, attempts: 3, login: true, hint: "the NameNode refused the Kerberos login"}
}

// classifyBlock classifies errors that mean that no replica of a block could be read, or
// that no DataNode accepted a block.
func (r *retrier) classifyBlock(err error) (verdict, bool) {
	var none *blockError
	reading, writing := errors.As(err, &none), errors.Is(err, errNoPipeline)
	switch {
	case !reading && !writing:
		return verdict{}, false
	case reading && len(none.faults) == 0:
		return verdict{kind: fsys.ErrUnavailable, hint: "the DataNodes that hold it are down, or have lost it; `hdfs fsck` with -files -blocks -locations lists them"}, true
	case errors.Is(err, sasl.ErrProtection):
		return verdict{kind: fsys.ErrConfig, attempts: 1, hint: "the DataNode's dfs.data.transfer.protection differs from the client's: set the client's hdfs-site.xml as on the cluster"}, true
	case r.c.krb != nil && r.c.conf.protection == "" && !r.c.readOnce.Load() && (errors.Is(err, errHungUp) || errors.Is(err, syscall.ECONNRESET)):
		return verdict{kind: fsys.ErrConfig, attempts: 3, hint: "the DataNode closed the connection: it expects data transfer protection. Set dfs.data.transfer.protection in the client's hdfs-site.xml (data.hdfs.conf_dir) as on the cluster"}, true
	}
	if writing {
		return verdict{kind: fsys.ErrUnavailable, hint: "`hdfs dfsadmin -report` lists the DataNodes"}, true
	}
	return verdict{kind: fsys.ErrUnavailable, hint: "no DataNode serves this block; `hdfs fsck` with -files -blocks -locations shows where it should be"}, true
}
