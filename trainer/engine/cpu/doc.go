// Package cpu is the engine that uses the processors of the host.
//
// Machine runs the programs of a network (package program). One thread takes a tile of some 256
// examples through all steps of a stage, so each step finds the results of the one before in the
// second-level cache, and threads meet only between stages. Nothing is allocated after the first
// mini-batches.
//
// Engine implements engine.Engine with a Machine. It works on the rows of a pass where they are
// pinned, and on the parameters in the model's memory, so Import and Export do nothing. Results are
// delivered at once.
//
// # One mini-batch
//
//	collect     statistics of the unique rows; their values are gathered (U, RowDim)
//	stages      bags are pooled, the network runs forward and back, over tiles;
//	            gradients of parameters are summed over a block of tiles
//	check       loss and batch statistics are finite
//	update      parameters; then each row, by the sum of the gradients of its bags
//
// # Precision
//
// With engine.BF16, kernels convert both operands of a product when they pack them: weights once
// per mini-batch, activations and gradients tile by tile. So buffers, epilogues and all other steps
// are those of float32.
//
// # Determinism
//
// Tiles, blocks and threads do not change a bit of any result: each number has one fixed order of
// operations. Sums over examples are in ascending order of the examples.
package cpu
