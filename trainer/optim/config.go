package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// DenseConfig chooses the optimizer of the dense parameters. Settings that a kind does not use are
// ignored. There are no defaults here.
type DenseConfig struct {
	Kind               string // sgd, momentum, adagrad, adam, adamw
	LearningRate       float64
	Momentum           float64 // momentum
	Beta1, Beta2       float64 // adam, adamw
	Epsilon            float64 // adagrad, adam, adamw
	InitialAccumulator float64 // adagrad: s before the first step
	L2                 float64
	WeightDecay        float64 // adamw
	Averaging          float64 // share that the average of the parameters keeps in each step; 0 if there is none
}

// RowConfig chooses the optimizer of the rows. Settings that a kind does not use are ignored. There
// are no defaults here.
type RowConfig struct {
	Kind               string  // sgd, adagrad, rowwise_adagrad, adam, ftrl
	LearningRate       float64 // ftrl: alpha
	Beta1, Beta2       float64 // adam
	Epsilon            float64 // adagrad, rowwise_adagrad, adam
	InitialAccumulator float64 // adagrad, rowwise_adagrad: s of a new row; ftrl: its n
	L2                 float64 // of the rows in a mini-batch
	WeightDecay        float64 // of all rows, in every step; not ftrl; see package decay
	TableL2            float64 // of all rows, in every step; adagrad, rowwise_adagrad; see package decay
	FTRLL1             float64 // lambda1
	FTRLL2             float64 // lambda2
	FTRLBeta           float64 // beta
}

// checker collects the faults of a configuration.
type checker struct {
	what string
	errs []error
}

func (c *checker) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("optim: "+c.what+": "+format, args...))
}

func (c *checker) kind(kind string, allowed ...string) {
	if !slices.Contains(allowed, kind) {
		c.fail("kind %q: want %s", kind, strings.Join(allowed, ", "))
	}
}

func (c *checker) notNegative(name string, x float64) {
	if !(x >= 0 && x <= math.MaxFloat32) {
		c.fail("%s %v: want a finite number, 0 or more", name, x)
	}
}

// epsilon must be positive as a float32: otherwise a row that has had only zero gradients would be
// updated by 0/0.
func (c *checker) epsilon(x float64) {
	c.notNegative("epsilon", x)
	if float32(x) == 0 {
		c.fail("epsilon %v: want more than 0", x)
	}
}

func (c *checker) beta(name string, x float64) {
	if !(x >= 0 && x < 1) {
		c.fail("%s %v: want 0 or more, below 1", name, x)
	}
}

func (c DenseConfig) validate() error {
	k := checker{what: "dense optimizer"}
	k.kind(c.Kind, "sgd", "momentum", "adagrad", "adam", "adamw")
	k.notNegative("learning_rate", c.LearningRate)
	k.notNegative("l2", c.L2)
	k.beta("averaging", c.Averaging)
	switch c.Kind {
	case "momentum":
		k.beta("momentum", c.Momentum)
	case "adagrad":
		k.epsilon(c.Epsilon)
		k.notNegative("initial_accumulator", c.InitialAccumulator)
	case "adam", "adamw":
		k.beta("beta1", c.Beta1)
		k.beta("beta2", c.Beta2)
		k.epsilon(c.Epsilon)
		k.notNegative("weight_decay", c.WeightDecay)
	}
	return errors.Join(k.errs...)
}

func (c RowConfig) validate() error {
	k := checker{what: "row optimizer"}
	k.kind(c.Kind, "sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl")
	k.notNegative("learning_rate", c.LearningRate)
	k.notNegative("l2", c.L2)
	k.notNegative("weight_decay", c.WeightDecay)
	if c.LearningRate*c.WeightDecay >= 1 {
		k.fail("learning_rate %v times weight_decay %v: want less than 1, since a step multiplies rows by 1 minus that", c.LearningRate, c.WeightDecay)
	}
	k.notNegative("table_l2", c.TableL2)
	switch rate := c.LearningRate * c.TableL2; {
	case rate >= 1:
		k.fail("learning_rate %v times table_l2 %v: want less than 1", c.LearningRate, c.TableL2)
	case rate > 0 && c.Kind != "adagrad" && c.Kind != "rowwise_adagrad":
		k.fail("table_l2 %v: only adagrad and rowwise_adagrad have it", c.TableL2)
	case rate > 0 && c.WeightDecay > 0:
		k.fail("both weight_decay and table_l2 hold all rows back: want one of them")
	}
	switch c.Kind {
	case "adagrad", "rowwise_adagrad":
		k.epsilon(c.Epsilon)
		k.notNegative("initial_accumulator", c.InitialAccumulator)
	case "adam":
		k.beta("beta1", c.Beta1)
		k.beta("beta2", c.Beta2)
		k.epsilon(c.Epsilon)
	case "ftrl":
		k.notNegative("ftrl_l1", c.FTRLL1)
		k.notNegative("ftrl_l2", c.FTRLL2)
		k.notNegative("ftrl_beta", c.FTRLBeta)
		k.notNegative("initial_accumulator", c.InitialAccumulator)
		if c.LearningRate == 0 {
			k.fail("learning_rate 0: ftrl divides by it")
		}
		if c.FTRLBeta+c.FTRLL2+c.InitialAccumulator == 0 {
			k.fail("one of ftrl_beta, ftrl_l2 and initial_accumulator must be above 0: a new row divides by their sum")
		}
	}
	return errors.Join(k.errs...)
}
