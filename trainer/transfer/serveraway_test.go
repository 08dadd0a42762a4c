package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWhileServerAway: a server that does not answer is asked again, until it answers, has another
// error, or the time is over; a wrong path is no such error.
func TestWhileServerAway(t *testing.T) {
	away := fmt.Errorf("list: %w", &os.PathError{Op: "open", Path: "/nfs", Err: unix.ESTALE})
	for name, tc := range map[string]struct {
		errs     []error // of the calls, the last of all others
		patience time.Duration
		calls    int
		want     error
	}{
		"it answers":    {[]error{nil}, time.Hour, 1, nil},
		"softerr":       {[]error{unix.ETIMEDOUT, nil}, time.Hour, 2, nil},
		"it comes back": {[]error{away, away, nil}, time.Hour, 3, nil},
		"a wrong path":  {[]error{away, unix.ENOTDIR}, time.Hour, 2, unix.ENOTDIR},
		"no patience":   {[]error{away}, 0, 1, unix.ESTALE},
		"it stays away": {[]error{away}, time.Second, 2, unix.ESTALE},
	} {
		calls := 0
		err := WhileServerAway(t.Context(), tc.patience, silent, func() error {
			calls++
			return tc.errs[min(calls, len(tc.errs))-1]
		})
		if calls < tc.calls || tc.patience != time.Second && calls != tc.calls || !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	err := WhileServerAway(ctx, time.Hour, silent, func() error {
		stop()
		return away
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
