package transfer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// WhileServerAway calls read again and again, for at most patience, while it fails because the
// server of a mounted file system does not answer. HDFS does not need this: its client has waited
// for data.hdfs.retry_ms when read returns.
func WhileServerAway(ctx context.Context, patience time.Duration, log *slog.Logger, read func() error) error {
	deadline := time.Now().Add(patience)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		err := read()
		left := time.Until(deadline)
		if err == nil || !serverAway(err) || left <= 0 {
			return err
		}
		log.Warn("a remote directory cannot be read; reading is retried", "seconds_left", left.Seconds(), "error", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(pause, left)):
		}
	}
}

// serverAway reports whether a mounted file system says that its server does not answer, which may
// be temporary.
func serverAway(err error) bool {
	away := []error{unix.EIO, unix.ETIMEDOUT, unix.ESTALE, unix.ENOTCONN, unix.EREMOTEIO, unix.EHOSTDOWN} // ETIMEDOUT is NFS's with softerr
	return slices.ContainsFunc(away, func(target error) bool { return errors.Is(err, target) })
}
