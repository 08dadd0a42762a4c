package ops

import (
	"fmt"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Columns keeps the columns [lo, hi) of every group: x (N, G*period) is read as (N, G, period), and
// the result is (N, G*(hi-lo)). If period is the number of columns, it is a plain slice. If it is
// the length of a row, it takes, for instance, the linear weight of every field's pooled row.
func Columns(period, lo, hi int, x *gorgonia.Node) (*gorgonia.Node, error) {
	if period < 1 || lo < 0 || hi <= lo || hi > period {
		return nil, fmt.Errorf("ops: columns [%d, %d) of %d", lo, hi, period)
	}
	return apply(&columns{base: newBase(1, "columns[%d:%d of %d]", lo, hi, period), period: period, lo: lo, hi: hi}, x)
}

type columns struct {
	base
	period, lo, hi int
}

func (op *columns) Type() hm.Type { return matrices(1) }

func (op *columns) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	if s[0][1]%op.period != 0 {
		return nil, fmt.Errorf("x is %v", s[0])
	}
	return tensor.Shape{s[0][0], s[0][1] / op.period * (op.hi - op.lo)}, nil
}

func (op *columns) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	width := op.hi - op.lo
	groups := c / op.period
	y, ydata := op.out(n, groups*width)
	parallel(n*groups, rowGrain(width), func(lo, hi int) {
		for g := lo; g < hi; g++ {
			copy(ydata[g*width:(g+1)*width], x[g*op.period+op.lo:])
		}
	})
	return y, nil
}

func (op *columns) DiffWRT(int) []bool { return []bool{true} }

func (op *columns) SymDiff(_ gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	dx, err := apply(&spread{base: newBase(1, "spread[%d:%d of %d]", op.lo, op.hi, op.period), period: op.period, lo: op.lo, hi: op.hi}, dy)
	return gorgonia.Nodes{dx}, err
}

// spread is the derivative of columns: it puts the columns back into their places, and zeros into
// all others.
type spread struct {
	base
	period, lo, hi int
}

func (op *spread) Type() hm.Type { return matrices(1) }

func (op *spread) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{s[0][0], s[0][1] / (op.hi - op.lo) * op.period}, nil
}

func (op *spread) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	dy, n, c := matrix(in[0])
	width := op.hi - op.lo
	groups := c / width
	dx, ddata := op.out(n, groups*op.period)
	parallel(n*groups, rowGrain(op.period), func(lo, hi int) {
		for g := lo; g < hi; g++ {
			out := ddata[g*op.period : (g+1)*op.period]
			clear(out[:op.lo])
			copy(out[op.lo:op.hi], dy[g*width:(g+1)*width])
			clear(out[op.hi:])
		}
	})
	return dx, nil
}

// Concat returns matrices (N, C₁), (N, C₂), … side by side, (N, ΣC).
func Concat(parts ...*gorgonia.Node) (*gorgonia.Node, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	return apply(&concat{base: newBase(len(parts), "concat")}, parts...)
}

type concat struct{ base }

func (op *concat) Type() hm.Type { return matrices(op.arity) }

func (op *concat) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	shapes, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	width := 0
	for i, s := range shapes {
		if s[0] != shapes[0][0] {
			return nil, fmt.Errorf("part %d is %v, the first is %v", i, s, shapes[0])
		}
		width += s[1]
	}
	return tensor.Shape{shapes[0][0], width}, nil
}

func (op *concat) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	n, width := in[0].Shape()[0], 0
	for _, v := range in {
		width += v.Shape()[1]
	}
	y, ydata := op.out(n, width)
	at := 0
	for _, v := range in {
		x, _, c := matrix(v)
		start := at
		parallel(n, rowGrain(c), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				copy(ydata[i*width+start:][:c], x[i*c:(i+1)*c])
			}
		})
		at += c
	}
	return y, nil
}

func (op *concat) DiffWRT(n int) []bool { return differentiable(n, n) }

func (op *concat) SymDiff(in gorgonia.Nodes, y, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	return op.diff(nil, in, y, dy)
}

func (op *concat) diff(need []bool, in gorgonia.Nodes, y, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	grads := make(gorgonia.Nodes, len(in))
	width, at := y.Shape()[1], 0
	for i, x := range in {
		c := x.Shape()[1]
		if needs(need, i) {
			var err error
			if grads[i], err = Columns(width, at, at+c, dy); err != nil {
				return nil, err
			}
		}
		at += c
	}
	return grads, nil
}
