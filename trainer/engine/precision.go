package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Precision is the number format of matrix products. Parameters, optimizer state, rows, activations
// between products and losses are float32 in any precision.
type Precision uint8

const (
	// Float32 multiplies float32 operands.
	Float32 Precision = iota
	// BF16 rounds both operands of most products to bfloat16 and accumulates in float32: see Rounds
	// and kernel.GemmBF16. Models are as reproducible as in float32.
	BF16
	// TF32 rounds both operands of the same products to 10 bits of mantissa, as NVIDIA devices do
	// from compute capability 8.0 on. The host's processors have no such products.
	TF32
)

// Rounds reports whether the products of a layer, forward and backward, have both operands rounded.
// A layer with one unit, such as the last one of each model, or with one input multiplies by a
// vector; there rounding would cost precision and save no time.
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
