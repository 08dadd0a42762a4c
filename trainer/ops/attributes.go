package ops

import "gorgonia.org/gorgonia"

// Kind names what an op computes, for executors other than Gorgonia's machine. The operands are
// those of the op's constructor, in order. Derivatives have no exported constructor, so their
// operands are given here.
type Kind uint8

const (
	KindActivate     Kind = iota + 1 // a(x)
	KindActivateGrad                 // y, dy: dy * a'(x), where y = a(x)
	KindBagPool
	KindBagPoolGrad // dy, rows, offsets, index, weights: the gradients of the rows
	KindBatchStats
	KindBatchNorm
	KindBatchNormGamma // x, stats, dy: the gradient of gamma
	KindBatchNormInput // x, gamma, stats, dgamma, dbeta, dy: the gradient of x
	KindBias
	KindColumns
	KindColumnSum // x (N, C): the sums of its columns (C)
	KindConcat
	KindCross // x0, z, xl, and a bias if there is one: x0 ⊙ z + bias + xl
	KindDropout
	KindFM
	KindFMGrad // x, dy
	KindInteract
	KindInteractGrad // x, dy
	KindLinear
	KindLoss
	KindLossGrad // logits, labels, weights, the gradient of the loss
	KindMatMul   // a, b: their product, either of them transposed as the attributes say
	KindMultiply // x (N, C), y (N, C) or (N, 1)
	KindRepeat   // x (N, 1): its column, repeated
	KindRowDot   // x, y: the dot products of their rows
	KindRowSum
	KindScaleVectors
	KindScaleVectorsGrad // x, dy: their products, whose column sums are the derivative
	KindSpread           // dy: the derivative of columns, which puts them into their places among zeros
	KindSum
)

// Attributes are the parameters with which an op was made, besides its operands. Fields that a kind
// does not use are zero.
type Attributes struct {
	Kind           Kind
	Activation     Activation // linear, activate
	Pooling        Pooling    // bag pooling: PoolMean if some field is averaged
	Sums           []bool     // bag pooling: which fields are summed, if others are averaged; else nil
	TransA, TransB bool       // matrix product
	Period, Lo, Hi int        // columns, spread
	Dim            int        // interactions: length of a vector
	Probability    float64    // dropout
	Seed           uint64     // dropout
	Layer          int        // dropout
}

// Describe returns the attributes of the op that computes node. ok is false for inputs
// and for ops of other packages.
func Describe(node *gorgonia.Node) (a Attributes, ok bool) {
	op, ok := node.Op().(interface{ attributes() Attributes })
	if !ok {
		return Attributes{}, false
	}
	return op.attributes(), true
}

func (op *activate) attributes() Attributes {
	return Attributes{Kind: KindActivate, Activation: op.act}
}

func (op *activateGrad) attributes() Attributes {
	return Attributes{Kind: KindActivateGrad, Activation: op.act}
}

func (op *bagPool) attributes() Attributes {
	return Attributes{Kind: KindBagPool, Pooling: op.pooling, Sums: op.sums}
}

func (op *bagPoolGrad) attributes() Attributes {
	return Attributes{Kind: KindBagPoolGrad, Pooling: op.pooling, Sums: op.sums}
}

func (*batchStats) attributes() Attributes     { return Attributes{Kind: KindBatchStats} }
func (*batchNorm) attributes() Attributes      { return Attributes{Kind: KindBatchNorm} }
func (*batchNormGamma) attributes() Attributes { return Attributes{Kind: KindBatchNormGamma} }
func (*batchNormInput) attributes() Attributes { return Attributes{Kind: KindBatchNormInput} }
func (*bias) attributes() Attributes           { return Attributes{Kind: KindBias} }

func (op *columns) attributes() Attributes {
	return Attributes{Kind: KindColumns, Period: op.period, Lo: op.lo, Hi: op.hi}
}

func (*colsum) attributes() Attributes  { return Attributes{Kind: KindColumnSum} }
func (*concat) attributes() Attributes  { return Attributes{Kind: KindConcat} }
func (*crossOp) attributes() Attributes { return Attributes{Kind: KindCross} }

func (op *dropout) attributes() Attributes {
	return Attributes{Kind: KindDropout, Probability: op.p, Seed: op.seed, Layer: op.layer}
}

func (op *fm) attributes() Attributes       { return Attributes{Kind: KindFM, Dim: op.dim} }
func (op *fmGrad) attributes() Attributes   { return Attributes{Kind: KindFMGrad, Dim: op.dim} }
func (op *interact) attributes() Attributes { return Attributes{Kind: KindInteract, Dim: op.dim} }

func (op *interactGrad) attributes() Attributes {
	return Attributes{Kind: KindInteractGrad, Dim: op.dim}
}

func (op *linear) attributes() Attributes {
	return Attributes{Kind: KindLinear, Activation: op.act}
}

func (*loss) attributes() Attributes     { return Attributes{Kind: KindLoss} }
func (*lossGrad) attributes() Attributes { return Attributes{Kind: KindLossGrad} }

func (op *matmul) attributes() Attributes {
	return Attributes{Kind: KindMatMul, TransA: op.transA, TransB: op.transB}
}

func (*product) attributes() Attributes { return Attributes{Kind: KindMultiply} }

func (op *repeat) attributes() Attributes { return Attributes{Kind: KindRepeat} }

func (*rowdot) attributes() Attributes { return Attributes{Kind: KindRowDot} }
func (*rowsum) attributes() Attributes { return Attributes{Kind: KindRowSum} }

func (op *scaleVectors) attributes() Attributes {
	return Attributes{Kind: KindScaleVectors, Dim: op.dim}
}

func (op *scaleVectorsGrad) attributes() Attributes {
	return Attributes{Kind: KindScaleVectorsGrad, Dim: op.dim}
}

func (op *spread) attributes() Attributes {
	return Attributes{Kind: KindSpread, Period: op.period, Lo: op.lo, Hi: op.hi}
}

func (*sum) attributes() Attributes { return Attributes{Kind: KindSum} }
