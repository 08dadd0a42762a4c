package ops

import (
	"fmt"
	"hash"
	"hash/fnv"
	"sync/atomic"

	"github.com/chewxy/hm"
	// Gorgonia refuses to start under a Go release that this module, in the
	// version of go.mod, does not know.
	_ "go4.org/unsafe/assume-no-moving-gc"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// serial numbers the ops of the process. It is used only in the hash of an op: Gorgonia merges
// nodes with equal hashes, and two ops that have buffers must never be merged.
var serial atomic.Uint64

// base is what all ops share: the common methods of Gorgonia's interfaces, and the buffer of the
// result. Ops embed it.
type base struct {
	name  string
	id    uint64
	arity int

	result *tensor.Dense
	data   []float32 // backing of result; its capacity is kept when the shape shrinks
}

func newBase(arity int, format string, args ...any) base {
	return base{name: fmt.Sprintf(format, args...), id: serial.Add(1), arity: arity}
}

// The methods of gorgonia.Op that are the same for all ops.

func (b *base) Arity() int            { return b.arity }
func (b *base) ReturnsPtr() bool      { return true }
func (b *base) CallsExtern() bool     { return false } // no alloc instruction: see doc.go
func (b *base) OverwritesInput() int  { return -1 }
func (b *base) WriteHash(h hash.Hash) { fmt.Fprintf(h, "%s#%d", b.name, b.id) }
func (b *base) String() string        { return b.name }

func (b *base) Hashcode() uint32 {
	h := fnv.New32a()
	b.WriteHash(h)
	return h.Sum32()
}

// out returns the op's result tensor in the given shape, and its memory, whose contents are
// undefined. Memory only grows.
func (b *base) out(shape ...int) (*tensor.Dense, []float32) {
	if b.result != nil && sameShape(b.result.Shape(), shape) {
		return b.result, b.data
	}
	size := 1
	for _, n := range shape {
		size *= n
	}
	if cap(b.data) < size {
		b.data = make([]float32, size)
	}
	b.data = b.data[:size]
	b.result = tensor.New(tensor.WithShape(shape...), tensor.WithBacking(b.data))
	return b.result, b.data
}

// Children returns the operands of node, in order.
func Children(node *gorgonia.Node) gorgonia.Nodes {
	it := node.Graph().From(node.ID())
	children := make(gorgonia.Nodes, 0, it.Len())
	for it.Next() {
		children = append(children, it.Node().(*gorgonia.Node))
	}
	return children
}

// apply adds op over inputs to the graph of inputs.
func apply(op gorgonia.Op, inputs ...*gorgonia.Node) (*gorgonia.Node, error) {
	node, err := gorgonia.ApplyOp(op, inputs...)
	if err != nil {
		return nil, fmt.Errorf("ops: %v: %w", op, err)
	}
	return node, nil
}

// Types. A fresh function type is made at every call because Gorgonia returns
// it to a pool after use.

func floats(dims int) hm.Type { return gorgonia.TensorType{Dims: dims, Of: tensor.Float32} }
func int32s() hm.Type         { return gorgonia.TensorType{Dims: 1, Of: tensor.Int32} }
func int64s() hm.Type         { return gorgonia.TensorType{Dims: 1, Of: tensor.Int64} }

// matrices is the type of an op over n matrices that yields a matrix.
func matrices(n int) hm.Type {
	types := make([]hm.Type, n+1)
	for i := range types {
		types[i] = floats(2)
	}
	return hm.NewFnType(types...)
}

// Shapes.

func sameShape(a tensor.Shape, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i, n := range b {
		if a[i] != n {
			return false
		}
	}
	return true
}

// shapeOf returns the shape behind a DimSizer, which Gorgonia always makes
// from a tensor.Shape.
func shapeOf(ds gorgonia.DimSizer) tensor.Shape { return ds.(tensor.Shape) }

// matrixShapes returns the rows and columns of every operand, or an error if one is not a matrix.
func matrixShapes(ds []gorgonia.DimSizer) ([][2]int, error) {
	shapes := make([][2]int, len(ds))
	for i, d := range ds {
		s := shapeOf(d)
		if len(s) != 2 {
			return nil, fmt.Errorf("operand %d has shape %v, want a matrix", i, s)
		}
		shapes[i] = [2]int{s[0], s[1]}
	}
	return shapes, nil
}

// sameMatrices is InferShape of ops whose operands and result are matrices of
// one shape.
func sameMatrices(ds []gorgonia.DimSizer) (tensor.Shape, error) {
	shapes, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	for i, s := range shapes {
		if s != shapes[0] {
			return nil, fmt.Errorf("operand %d is %v, the first is %v", i, s, shapes[0])
		}
	}
	return tensor.Shape{shapes[0][0], shapes[0][1]}, nil
}

// Values.

// dense returns the tensor behind a value. All values in these graphs except the loss
// are tensors.
func dense(v gorgonia.Value) *tensor.Dense { return v.(*tensor.Dense) }

// matrix returns a value's elements, rows and columns.
func matrix(v gorgonia.Value) (data []float32, rows, cols int) {
	d := dense(v)
	s := d.Shape()
	return d.Float32s(), s[0], s[1]
}

// scalar returns the number behind a float32 scalar.
func scalar(v gorgonia.Value) float32 {
	switch s := v.(type) {
	case *gorgonia.F32:
		return float32(*s)
	case *tensor.Dense:
		return s.Float32s()[0]
	}
	panic(fmt.Sprintf("ops: %T is not a scalar", v))
}

// differentiable returns n flags for DiffWRT, of which the first k are set.
func differentiable(k, n int) []bool {
	flags := make([]bool, n)
	for i := range k {
		flags[i] = true
	}
	return flags
}
