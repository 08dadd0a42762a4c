package cuda

import (
	"errors"

	"aibox/internal/panics"
	"aibox/trainer/program"
)

// outcome is how far the engine can be used.
type outcome struct {
	imported bool  // the devices have what the state of the engine has
	stopped  bool  // a call of the pass has returned an error
	err      error // that every later call returns
}

// fail keeps an error, so that all later calls return it.
func (o *outcome) fail(err error) error {
	if o.err == nil {
		o.err = err
	}
	return err
}

// leave ends a call of Train or Infer. A panic, which has become an error, may have left a step
// half enqueued.
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

// usable is the error of a call that only works on what the engine has, which is all right
// after a mini-batch that was not finite.
func (o *outcome) usable() error {
	if errors.Is(o.err, program.ErrNotFinite) {
		return nil
	}
	return o.err
}
