package errkind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func TestOf(t *testing.T) {
	locked := New(Locked, "locked")
	for _, c := range []struct {
		err  error
		want Kind
	}{
		{errors.New("nobody knows it"), Internal},
		{locked, Locked},
		{fmt.Errorf("table: %w", locked), Locked},
		{fmt.Errorf("training.warm_start: %w", As(Job, fmt.Errorf("x: %w", locked))), Job}, // the outermost decides
		{errors.Join(errors.New("closing"), locked), Locked},
		{errors.Join(As(Data, errors.New("bad rows")), syscall.ENOSPC), Data},
		{As(Internal, &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}), Internal},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, IO},
		{&os.LinkError{Op: "rename", Err: syscall.EXDEV}, IO},
		{syscall.ENOSPC, IO},
		{io.ErrShortWrite, IO},
		{fmt.Errorf("reading: %w", context.Canceled), Interrupted},
	} {
		if have := Of(context.Background(), c.err); have != c.want {
			t.Errorf("%v: %v, want %v", c.err, have, c.want)
		}
	}
}

func TestOfInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("the user wants to stop")
	cancel(stop)
	if have := Of(ctx, fmt.Errorf("reading: %w", stop)); have != Interrupted {
		t.Errorf("the cause of the end: %v", have)
	}
	if have := Of(ctx, syscall.ENOSPC); have != IO {
		t.Errorf("a full disk while interrupted: %v", have)
	}
}

// TestKindsDiffer: each kind has an exit code, a name and a text of its own.
func TestKindsDiffer(t *testing.T) {
	if len(All) != len(kinds) {
		t.Errorf("%d kinds are listed, there are %d", len(All), len(kinds))
	}
	codes, names := map[int]bool{0: true}, map[string]bool{"": true}
	for _, k := range All {
		if codes[k.ExitCode()] || names[k.String()] || names[k.Text()] && k != Interrupted {
			t.Errorf("%v, exit code %d, is not the only one", k, k.ExitCode())
		}
		codes[k.ExitCode()], names[k.String()], names[k.Text()] = true, true, true
	}
}

func TestErrorsKeepTheirText(t *testing.T) {
	cause := errors.New("no room")
	err := Errorf(IO, "writing %s: %w", "x", cause)
	if err.Error() != "writing x: no room" || !errors.Is(err, cause) || As(IO, nil) != nil {
		t.Errorf("%v", err)
	}
}
