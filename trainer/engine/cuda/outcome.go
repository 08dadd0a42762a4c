package cuda

import (
	"errors"

	"aibox/internal/panics"
	"aibox/trainer/program"
)

// outcome is whether the engine can still be used.
type outcome struct {
	imported bool  // the devices have the parameters of the state
	stopped  bool  // a call of the pass has returned an error
	err      error // every later call returns it
}

// fail keeps the first error, which all later calls return, and returns err.
func (o *outcome) fail(err error) error {
	if o.err == nil {
		o.err = err
	}
	return err
}

// leave ends a call that computes. An error that was a panic is kept, since the call may have left
// a step half enqueued.
func (o *outcome) leave(err *error) {
	if *err == nil {
		return
	}
	o.stopped = true
	var panicked *panics.Error
	if errors.As(*err, &panicked) {
		_ = o.fail(*err)
	}
}

// usable returns the error of a call that only uses the parameters. These are valid even after a
// mini-batch that was not finite.
func (o *outcome) usable() error {
	if errors.Is(o.err, program.ErrNotFinite) {
		return nil
	}
	return o.err
}
