package joblock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"aibox/internal/errkind"
	"aibox/internal/panics"
)

// ErrLocked says that another process works on the job.
var ErrLocked = errkind.New(errkind.Locked, "another process is training this job")

// poll is how often a waiting process checks whether the lock is free.
const poll = 200 * time.Millisecond

// Take takes the lock of the job called name in file, and holds it until the result is
// closed. If another process has it, Take waits for it until the deadline; before it
// waits, it calls waiting with the process's ID, 0 if that is not known. The error after
// the deadline is ErrLocked.
func Take(ctx context.Context, file, name string, deadline time.Time, waiting func(process int)) (io.Closer, error) {
	socket, err := socketName(file, name)
	if err != nil {
		return nil, err
	}
	for said := false; ; {
		l, err := listen(ctx, socket)
		if !errors.Is(err, unix.EADDRINUSE) {
			return l, err
		}
		if !time.Now().Before(deadline) {
			return nil, fmt.Errorf("%s: %w%s", file, ErrLocked, processText(holder(ctx, socket)))
		}
		if !said {
			waiting(holder(ctx, socket))
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(poll):
		}
	}
}

// socketName is the abstract name of a job's socket.
func socketName(file, name string) (string, error) {
	path, err := filepath.Abs(file)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", err
	}
	// The directory is known by its inode, because containers may see it by other paths,
	// and the file by its name, because editors replace files.
	var dir unix.Stat_t
	if err := unix.Stat(filepath.Dir(path), &dir); err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Dir(path), err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %q %q", dir.Dev, dir.Ino, filepath.Base(path), name))
	return "@aibox-job-" + hex.EncodeToString(sum[:16]), nil
}

// lock is a socket with the name of a job.
type lock struct {
	listener net.Listener
	ended    chan struct{}
}

func listen(ctx context.Context, socket string) (io.Closer, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	k := &lock{l, make(chan struct{})}
	panics.Go("the lock of the job", k.answer)
	return k, nil
}

// answer closes the connections of processes that asked for the lock until the lock is
// closed.
func (k *lock) answer() {
	defer close(k.ended)
	for {
		c, err := k.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(poll) // there may be no file descriptor left for a while
			continue
		}
		_ = c.Close() // whoever asked has learned all there is
	}
}

// Close releases the lock.
func (k *lock) Close() error {
	err := k.listener.Close()
	<-k.ended
	return err
}

// holder returns the ID of the process that has the lock, 0 if it is not known.
func holder(ctx context.Context, socket string) (process int) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return 0
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			process = int(cred.Pid)
		}
	})
	return process
}

func processText(process int) string {
	if process == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", process)
}
