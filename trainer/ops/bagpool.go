package ops

import (
	"fmt"
	"slices"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Pooling says how the rows of a bag are combined into one vector.
type Pooling uint8

const (
	PoolSum  Pooling = iota // Σ w·row
	PoolMean                // Σ w·row / Σ w; zero if Σ w is zero
)

var poolingNames = [...]string{PoolSum: "sum", PoolMean: "mean"}

func (p Pooling) String() string { return poolingNames[p] }

// PoolingNames lists the names that ParsePooling accepts.
func PoolingNames() []string { return append([]string(nil), poolingNames[:]...) }

// ParsePooling returns the pooling of the given name.
func ParsePooling(name string) (Pooling, error) {
	for p, n := range poolingNames {
		if n == name {
			return Pooling(p), nil
		}
	}
	return 0, fmt.Errorf("ops: no pooling %q; there are %q", name, poolingNames)
}

// Bags is the sparse part of a mini-batch as three input nodes: compressed rows over (example,
// field), as in reader.Batch.
type Bags struct {
	Offsets *gorgonia.Node // int32 (N*F+1), ascending from 0
	Index   *gorgonia.Node // int32 (features), into the unique rows
	// Weights is float32 (features). If it has one element, which must be 1, and there is more than
	// one feature, every feature has weight 1.
	Weights *gorgonia.Node
}

// BagPool returns the pooled rows (N, F*R) of every bag. rows (U, R) are the values of the
// mini-batch's unique rows. An empty bag gives zeros. A row that occurs several times in a bag
// counts several times. of says how each of the F fields is pooled.
//
// Its derivative with regard to rows (U, R) adds to each row the gradients of the bags that it
// occurs in, in ascending order of occurrence, independently of the number of threads.
func BagPool(of []Pooling, rows *gorgonia.Node, bags Bags) (*gorgonia.Node, error) {
	p := newPools(of)
	op := &bagPool{base: newBase(4, "bag-pool(%v)", of), pools: p}
	return apply(op, rows, bags.Offsets, bags.Index, bags.Weights)
}

// pools says how fields are pooled. If some are averaged, so that bags need factors, those that are
// summed have the factor 1.
type pools struct {
	pooling Pooling // PoolMean if some field is averaged
	fields  int
	sums    []bool // which fields are summed, if others are averaged; else nil
}

func newPools(of []Pooling) pools {
	p := pools{fields: len(of)}
	if slices.Contains(of, PoolMean) {
		p.pooling = PoolMean
		if slices.Contains(of, PoolSum) {
			for _, f := range of {
				p.sums = append(p.sums, f == PoolSum)
			}
		}
	}
	return p
}

// averages reports whether bag b is averaged.
func (p *pools) averages(b int) bool {
	return p.pooling == PoolMean && (p.sums == nil || !p.sums[b%p.fields])
}

type bagPool struct {
	base
	pools
}

func (op *bagPool) Type() hm.Type {
	return hm.NewFnType(floats(2), int32s(), int32s(), floats(1), floats(2))
}

func (op *bagPool) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	rows, offsets := shapeOf(ds[0]), shapeOf(ds[1])
	if len(rows) != 2 || len(offsets) != 1 || (offsets[0]-1)%op.fields != 0 {
		return nil, fmt.Errorf("rows are %v, offsets %v, for %d fields", rows, offsets, op.fields)
	}
	return tensor.Shape{(offsets[0] - 1) / op.fields, op.fields * rows[1]}, nil
}

func (op *bagPool) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	rows, _, r := matrix(in[0])
	bags := bagsOf(in[1:])
	n := bags.len()
	y, ydata := op.out(n/op.fields, op.fields*r)
	parallel(n, rowGrain(r), func(lo, hi int) {
		for b := lo; b < hi; b++ {
			out := ydata[b*r : (b+1)*r]
			if lo := bags.offsets[b]; bags.weights == nil && bags.offsets[b+1] == lo+1 {
				copy(out, rows[int(bags.index[lo])*r:][:r])
				continue
			}
			clear(out)
			for p := bags.offsets[b]; p < bags.offsets[b+1]; p++ {
				row := rows[int(bags.index[p])*r:][:r]
				if bags.weights == nil {
					kernel.Add(out, row)
				} else {
					kernel.Axpy(bags.weights[p], row, out)
				}
			}
			if op.averages(b) && bags.offsets[b+1]-bags.offsets[b] > 0 {
				kernel.Scale(bags.meanFactor(b), out)
			}
		}
	})
	return y, nil
}

func (op *bagPool) DiffWRT(int) []bool { return differentiable(1, 4) }

func (op *bagPool) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	grad := &bagPoolGrad{base: newBase(5, "bag-pool-grad(%v)", op.pools), pools: op.pools}
	drows, err := apply(grad, dy, in[0], in[1], in[2], in[3])
	return gorgonia.Nodes{drows, nil, nil, nil}, err
}

// bagView is the values of Bags.
type bagView struct {
	offsets, index []int32
	weights        []float32 // nil if all are 1
}

func bagsOf(in []gorgonia.Value) bagView {
	v := bagView{
		offsets: dense(in[0]).Int32s(),
		index:   dense(in[1]).Int32s(),
		weights: dense(in[2]).Float32s(),
	}
	if features := int(v.offsets[len(v.offsets)-1]); len(v.weights) == 1 && features != 1 {
		v.weights = nil
	}
	return v
}

func (v bagView) len() int { return len(v.offsets) - 1 }

func (v bagView) meanFactor(b int) float32 {
	return MeanFactor(v.offsets[b], v.offsets[b+1], v.weights)
}

// MeanFactor returns the factor that turns the sum over a bag, of features lo to hi-1, into its
// mean. weights are those of all features; nil stands for 1.
func MeanFactor(lo, hi int32, weights []float32) float32 {
	total := float32(hi - lo)
	if weights != nil {
		total = 0
		for _, w := range weights[lo:hi] {
			total += w
		}
	}
	if total == 0 {
		return 0
	}
	return 1 / total
}
