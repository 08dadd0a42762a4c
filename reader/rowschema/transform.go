package rowschema

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	"aibox/internal/fixmath"
	"aibox/reader/internal/hashes"
	"aibox/reader/number"
)

// TransformKind is what a Transform does.
type TransformKind uint8

// The transforms of dense columns.
const (
	// TransformLog1p is sign(x) log(1+|x|). It is monotone and defined everywhere, so
	// that -1 and -2, which occur in Criteo's integers, remain different from 0.
	TransformLog1p TransformKind = iota
	// TransformStandardize is (x-Mean)/Std; a Std of 0 (a constant column)
	// counts as 1.
	TransformStandardize
	// TransformClip is min(max(x, Min), Max).
	TransformClip
	// TransformBucketize turns the column into a sparse feature: the value is the
	// number of boundaries that are <= x, as decimal text, so that the boundaries
	// 10 and 20 give "0" below 10, "1" in [10, 20) and "2" from 20 on.
	TransformBucketize
)

var transformNames = [...]string{"log1p", "standardize", "clip", "bucketize"}

// String returns the name that ParseTransform takes.
func (k TransformKind) String() string {
	return nameOf(k, "TransformKind", transformNames[:])
}

// ParseTransform returns the transform of that name: log1p, standardize, clip or
// bucketize.
func ParseTransform(name string) (TransformKind, error) {
	return byName[TransformKind](name, "transform", transformNames[:])
}

// Transform is one step on a dense column. Steps are applied in order, in float64;
// the result is rounded to float32 once, at the end.
type Transform struct {
	Kind       TransformKind
	Mean, Std  float64 // standardize
	HasMeanStd bool    // Mean and Std are given; otherwise reader.Scan computes them
	Min, Max   float64 // clip; -Inf, +Inf where there is no limit
	Boundaries []float64
}

// apply returns the step's result; for bucketize, the bucket's number.
func (t *Transform) apply(x float64) float64 {
	switch t.Kind {
	case TransformLog1p:
		if x < 0 {
			return -log1p(-x)
		}
		return log1p(x)
	case TransformStandardize:
		if t.Std == 0 {
			return x - t.Mean
		}
		return (x - t.Mean) / t.Std
	case TransformClip:
		return min(max(x, t.Min), t.Max)
	default:
		return float64(sort.Search(len(t.Boundaries), func(i int) bool { return t.Boundaries[i] > x }))
	}
}

// Transformed applies the steps in order.
func Transformed(steps []Transform, x float64) float64 {
	for i := range steps {
		x = steps[i].apply(x)
	}
	return x
}

// BucketKey returns the key, in the space with that seed, of the bucket of a number after the
// steps, of which the last is a bucketize step.
func BucketKey(seed uint64, steps []Transform, x float64) uint64 {
	var text [20]byte
	return hashes.In(seed, strconv.AppendInt(text[:0], int64(Transformed(steps, x)), 10))
}

// smallLogs holds log1p of 0, 1, 2, …: most integers in click logs are small.
var smallLogs = func() (logs [1024]float64) {
	for i := range logs {
		logs[i] = fixmath.Log1p(float64(i))
	}
	return logs
}()

func log1p(x float64) float64 {
	if x < float64(len(smallLogs)) {
		if i := int(x); float64(i) == x {
			return smallLogs[i]
		}
	}
	return fixmath.Log1p(x)
}

// check lists what is wrong with the step.
func (t *Transform) check() error {
	switch t.Kind {
	case TransformLog1p:
	case TransformStandardize:
		if t.HasMeanStd && !(number.Finite(t.Mean) && number.Finite(t.Std) && t.Std >= 0) {
			return fmt.Errorf("standardize: mean %v and std %v must be finite, std not negative", t.Mean, t.Std)
		}
	case TransformClip:
		if !(t.Min <= t.Max) {
			return fmt.Errorf("clip: min %v must not exceed max %v", t.Min, t.Max)
		}
	case TransformBucketize:
		if len(t.Boundaries) == 0 {
			return fmt.Errorf("bucketize: no boundaries")
		}
		for i, b := range t.Boundaries {
			if math.IsNaN(b) || (i > 0 && !(t.Boundaries[i-1] < b)) {
				return fmt.Errorf("bucketize: boundaries %v must ascend", t.Boundaries)
			}
		}
	default:
		return fmt.Errorf("unknown transform %v", t.Kind)
	}
	return nil
}
