// Package program has the form in which engines run a network: a list of steps over
// planned buffers. Lower makes it once, when a job starts, from the differentiated
// Gorgonia graph of a model; it does not depend on the size of a mini-batch.
//
// # Steps and values
//
// A Step is one op of package ops with its attributes, the values that it reads and those
// that it writes. A Value is a matrix: some columns of a Buffer. So a slice of columns costs
// nothing, and what a concatenation joins is written to its place by the steps that compute
// it, if each of them is part of no other one. What the rows of a buffer belong to is
// said by Rows: to the examples of the mini-batch, to its unique rows of the sparse table,
// or to neither, as in parameters, their gradients and batch statistics.
//
// A step works row by row if row i of its results depends on row i of its operands alone;
// such steps can run over any cut of the examples. The others are reductions: products
// that sum over the examples, sums of columns, batch statistics, gradients of table rows.
//
// # Stages
//
// Steps are ordered so that as many as possible that work row by row follow one another.
// Such a run of steps, or of reductions, is a Stage. A network without batch
// normalization has two in training: everything forward and back, and then the gradients of
// the parameters. An executor takes a tile of examples that fits into a cache through a whole
// stage before it takes the next one, and all threads wait for one another only
// between stages.
//
// If all reductions are sums that can go on from what they hold (Program.Blocks),
// the stages may run over one block of examples after the other. Then the memory that a step
// of training needs does not grow with the mini-batch.
//
// # Scopes
//
// How long a buffer's contents are needed decides how much memory it takes: Tile, within one
// tile of one stage; Block, from one stage to another; Batch, until the engine has
// read them. Buffers of scope Tile whose lives do not overlap share a slot.
package program
