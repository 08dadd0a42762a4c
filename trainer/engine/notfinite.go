package engine

import (
	"fmt"
	"math"

	"aibox/trainer/program"
)

// All engines report values that are not finite in the same words. The errors wrap
// program.ErrNotFinite.

const remedy = "lower the learning rate, or look for extreme dense features or weights"

// LossError is the error of a step whose loss is not finite.
func LossError(step int64, loss float64) error {
	return fmt.Errorf("%w: the loss of step %d is %g; %s", program.ErrNotFinite, step, loss, remedy)
}

// StatisticsError is the error of a step whose batch statistics are not finite. They would spoil
// the running statistics for good. The loss need not show it: a huge value can pass through a
// normalization and give a finite loss.
func StatisticsError(n *program.Norm) error {
	return fmt.Errorf("%w: the batch statistics for %s and %s", program.ErrNotFinite, n.Mean.Name, n.Variance.Name)
}

// LogitError is the error of inference if the logit of an example is not finite.
func LogitError(example int, logit float32) error {
	return fmt.Errorf("%w: the logit of example %d of the mini-batch is %g", program.ErrNotFinite, example, logit)
}

// UpdateError is the error of a step whose update has made a value infinite or NaN.
func UpdateError(what string, step int64) error {
	return fmt.Errorf("%w: %s after the update of step %d; %s", program.ErrNotFinite, what, step, remedy)
}

// OptimizerError is the error of a step after which the optimizer's state of a parameter is infinite or
// NaN, but no value is. Such a value would never change again, in any later run. The state of rows is not
// checked: a row that does not change any more is not worth a night.
func OptimizerError(what string, step int64) error {
	return fmt.Errorf("%w: the optimizer's state of %s after the update of step %d; %s; if the model that training started from has that state already, name an earlier model in training.warm_start, or set it to \"\" to begin with a new one", program.ErrNotFinite, what, step, remedy)
}

// BatchError wraps an error with the step of its mini-batch.
func BatchError(step int64, err error) error {
	return fmt.Errorf("mini-batch of step %d: %w", step, err)
}

// Finite reports whether no value is infinite or NaN.
func Finite(x []float32) bool {
	const exponent = 0x7f800000 // all ones: infinite or NaN
	for _, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return false
		}
	}
	return true
}
