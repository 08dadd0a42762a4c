package kernels

import "aibox/gpu"

var (
	kernelOutput     = declare("output_layer", "wi wi wi wi ri ri ri ri ri r iiiii")
	kernelOutputBF16 = declare("output_layer_bf16", "wi wi wi wi ri ri ri ri ri r iiiii")
	kernelOutputSums = declare("output_sums", "ww ri ri ri iii")
)

// Output is a layer with one output, the logits, and what a training step computes from them. X is
// the result of an activation.
type Output struct {
	X, W, Bias      Matrix // the layer is X·W + Bias, where W has one column; the bias may be left out
	Activation      Activation
	Labels, Weights Matrix     // of examples; weights may be left out
	Check           gpu.Region // as with Loss
	Total           int        // as with LossGrad

	// Results: all have one column.
	Logits, Terms, Gradient Matrix
}

// Output computes the logits, in the order of kernel.Dot, the loss terms and the gradient of the
// logits, as Loss and LossGrad do, and dx, as DeriveOuter does, of which OutputSums makes sums. So
// X is read from memory once.
func (k *Set) Output(s gpu.Stream, o *Output, dx Matrix, rows int) error {
	return k.output(s, kernelOutput, o, dx.Region(rows), dx.Stride, rows)
}

// OutputBF16 is Output where dx is needed in bfloat16 alone, rounded as ToBF16 does.
func (k *Set) OutputBF16(s gpu.Stream, o *Output, dx Half, rows int) error {
	return k.output(s, kernelOutputBF16, o, dx.Region(rows), dx.Stride, rows)
}

func (k *Set) output(s gpu.Stream, n number, o *Output, dx gpu.Region, stride, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(o.Logits, rows).writes(o.Terms, rows).writes(o.Gradient, rows).add(gpu.Write(dx)).ints(stride)
	k.reads(o.X, rows).reads(o.W, o.X.Columns).perhaps(o.Bias, 1, o.X).reads(o.Labels, rows).perhaps(o.Weights, rows, o.X)
	g, size := outputRows(rows, o.X.Columns)
	k.add(gpu.Read(o.Check)).ints(rows, o.X.Columns, o.Total, int(o.Activation), size)
	return k.launch(s, n, g)
}

// outputRows is the geometry of Output: a block has 16 rows, with four threads each, and shared
// memory for them and for the weights, size elements apart, so that simultaneous reads are spread
// over as many banks as possible; size is 0 if a block does not have that many.
func outputRows(rows, columns int) (g gpu.Geometry, size int) {
	const each, threads = 16, 4
	size = (columns+15)/32*32 + 16
	if 4*((each+1)*size+each*lanes) > mostShared {
		size = 0
	}
	return gpu.Geometry{Grid: gpu.Dim{X: (rows + each - 1) / each}, Block: gpu.Dim{X: each * threads}, SharedBytes: 4 * (each + 1) * size}, size
}

// OutputSums leaves partial sums in dots and sums, from which FinishSums computes the gradient of W
// and the sums of the unrounded columns of dx. Each is memory of WorkBytes(rows, o.X.Columns).
func (k *Set) OutputSums(s gpu.Stream, o *Output, rows int, dots, sums gpu.Region) error {
	columns := o.X.Columns
	other, err := workPart(kernelOutputSums, sums, rows, columns)
	if err != nil {
		return err
	}
	return k.sumChunks(s, kernelOutputSums, pairBlocks, columns, rows, dots, func() {
		k.add(gpu.Write(other)).reads(o.Gradient, rows).reads(o.W, columns).reads(o.X, rows).ints(rows, columns, int(o.Activation))
	})
}
