package rowschema

import (
	"math"
	"testing"
)

func TestTransforms(t *testing.T) {
	log := Transform{Kind: TransformLog1p}
	for _, c := range []struct {
		steps   []Transform
		x, want float64
	}{
		{[]Transform{log}, 0, 0},
		{[]Transform{log}, 1e6, math.Log1p(1e6)},
		{[]Transform{log}, 0.25, math.Log1p(0.25)},
		{[]Transform{log}, -3, -math.Log1p(3)},
		{[]Transform{{Kind: TransformStandardize, Mean: 2, Std: 4}}, 10, 2},
		{[]Transform{{Kind: TransformStandardize, Mean: 2}}, 10, 8},
		{[]Transform{{Kind: TransformClip, Min: math.Inf(-1), Max: 5}}, 9, 5},
		{[]Transform{{Kind: TransformClip, Min: -1, Max: math.Inf(1)}}, -9, -1},
		{[]Transform{{Kind: TransformClip, Min: 0, Max: 3}, log}, 9, math.Log1p(3)},
		{[]Transform{{Kind: TransformBucketize, Boundaries: []float64{10, 20}}}, 9.99, 0},
		{[]Transform{{Kind: TransformBucketize, Boundaries: []float64{10, 20}}}, 10, 1},
		{[]Transform{{Kind: TransformBucketize, Boundaries: []float64{10, 20}}}, 20, 2},
	} {
		if got := Transformed(c.steps, c.x); math.Abs(got-c.want) > 1e-15*math.Abs(c.want) {
			t.Errorf("%v of %v = %v, want %v", c.steps, c.x, got, c.want)
		}
	}
}
