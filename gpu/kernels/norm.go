package kernels

import "aibox/gpu"

var (
	kernelNormSquares    = declare("norm_squares", "w ri ri iii")
	kernelNormStatistics = declare("norm_statistics", "wi ri ri ii")
	kernelNormalize      = declare("normalize", "wi ri ri ri ri ii")
	kernelNormGamma      = declare("norm_gamma", "w ri ri ri ii")
	kernelNormInput      = declare("norm_input", "wi ri ri ri ri ri ri iii")
	kernelUpdateRunning  = declare("update_running", "ui ri r ii")
)

// Batch normalization in training consists of ColumnSum of x, NormSquares, NormStatistics and
// Normalize, and in the backward pass of NormGamma, ColumnSum of dy and NormInput. Devices that
// each have a part of the mini-batch all-reduce their results of ColumnSum, NormSquares and
// NormGamma before these are used. count is the number of examples of the whole mini-batch, rows
// the number on this device. Statistics are two rows, means and variances. Vectors are matrices of
// one row.

// NormSquares sums up the squares of the deviations of x from the means, which are sums/count.
// Work is as with ColumnSum.
func (k *Set) NormSquares(s gpu.Stream, squares, x, sums Matrix, rows, count int, work gpu.Region) error {
	return k.sum(s, kernelNormSquares, squares, rows, work, func() {
		k.reads(x, rows).reads(sums, 1).ints(rows, x.Columns, count)
	})
}

// NormStatistics computes means and variances from the sums and the squares over the whole mini-batch.
func (k *Set) NormStatistics(s gpu.Stream, stats, sums, squares Matrix, count int) error {
	k.with().writes(stats, 2).reads(sums, 1).reads(squares, 1).ints(stats.Columns, count)
	return k.launch(s, kernelNormStatistics, elements(1, stats.Columns))
}

// Normalize computes y = gamma·(x − mean)/√(variance + 1e-5) + beta.
func (k *Set) Normalize(s gpu.Stream, y, x, gamma, beta, stats Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).reads(gamma, 1).reads(beta, 1).reads(stats, 2).ints(rows, y.Columns)
	return k.launch(s, kernelNormalize, columnBlocks(rows, y.Columns))
}

// NormGamma sums up dy·x̂, where x̂ is the normalized x: the gradient of gamma. Work is as with
// ColumnSum.
func (k *Set) NormGamma(s gpu.Stream, dgamma, x, stats, dy Matrix, rows int, work gpu.Region) error {
	return k.sum(s, kernelNormGamma, dgamma, rows, work, func() {
		k.reads(x, rows).reads(stats, 2).reads(dy, rows).ints(rows, x.Columns)
	})
}

// NormInput computes the gradient of x, dx = gamma/√(variance + 1e-5)·(dy − dbeta/count −
// x̂·dgamma/count), from the gradients of beta and gamma over the whole mini-batch.
func (k *Set) NormInput(s gpu.Stream, dx, x, gamma, stats, dgamma, dbeta, dy Matrix, rows, count int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(dx, rows).reads(x, rows).reads(gamma, 1).reads(stats, 2).reads(dgamma, 1).reads(dbeta, 1).reads(dy, rows)
	k.ints(rows, dx.Columns, count)
	return k.launch(s, kernelNormInput, columnBlocks(rows, dx.Columns))
}

// UpdateRunning moves the running statistics by a tenth of the way towards those of a
// mini-batch of count examples, in place, unless the flag is set. The running variance is the
// unbiased one; a single example leaves it alone.
func (k *Set) UpdateRunning(s gpu.Stream, running, stats Matrix, count int, flag gpu.Region) error {
	k.with().updates(running, 2).reads(stats, 2).add(gpu.Read(flag)).ints(running.Columns, count)
	return k.launch(s, kernelUpdateRunning, elements(1, running.Columns))
}
