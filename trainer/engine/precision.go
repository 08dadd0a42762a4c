package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Precision is the number format of matrix products. All else is float32 in any precision:
// parameters, optimizer state, rows, activations between products, losses.
type Precision uint8

const (
	// Float32 multiplies float32.
	Float32 Precision = iota
	// BF16 rounds both sides of most products to bfloat16 and sums up in float32: see Rounds
	// and kernel.GemmBF16. Models are as reproducible as in float32.
	BF16
	// TF32 rounds both sides of the same products to 10 bits behind the point, as Nvidia's devices do it from
	// compute capability 8 on. The processors of the host have no such products.
	TF32
)

// Rounds tells whether the products of a layer, forward and backward, have both sides rounded. A
// layer of one unit, such as the last one of each model, or of one input multiplies by a vector:
// there rounding would cost exactness and no less time.
func (p Precision) Rounds(inputs, outputs int) bool { return p != Float32 && inputs > 1 && outputs > 1 }

var precisions = []string{"float32", "bf16", "tf32"}

func (p Precision) String() string { return precisions[p] }

// ParsePrecision is the inverse of String.
func ParsePrecision(name string) (Precision, error) {
	i := slices.Index(precisions, name)
	if i < 0 {
		return 0, fmt.Errorf("engine: there is no precision %q; there are %s", name, strings.Join(precisions, ", "))
	}
	return Precision(i), nil
}
