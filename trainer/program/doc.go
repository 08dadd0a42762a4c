// Package program has the form in which engines run a network: a list of steps over planned
// buffers. Lower makes it once, when a job starts, from the differentiated Gorgonia graph of a
// model. It does not depend on the size of a mini-batch.
//
// # Steps and values
//
// A Step is one op of package ops with its attributes, its input values and its output values. A
// Value is a matrix: some columns of a Buffer. So a slice of columns costs nothing. Steps write
// their results directly into a concatenation, unless a result is part of another concatenation
// already. Rows says what the rows of a buffer belong to: to the examples of the mini-batch, to its
// unique rows of the sparse table, or to neither, as for parameters, their gradients and batch
// statistics.
//
// A step is row-wise if row i of its results depends only on row i of its operands. Row-wise steps
// can run over any division of the examples. The others are reductions: products that sum over the
// examples, column sums, batch statistics, gradients of table rows.
//
// # Stages
//
// Steps are ordered so that row-wise steps form runs that are as long as possible. A run of
// row-wise steps, or of reductions, is a Stage. In training, a network without batch normalization
// has two: everything forward and backward, and then the gradients of the parameters. An executor
// takes a tile of examples that fits a cache through a whole stage before it takes the next tile,
// and threads wait for one another only between stages.
//
// If all reductions are sums that can be continued (Program.Blocks), the stages may run over one
// block of examples after the other. Then the memory for a training step does not grow with the
// mini-batch.
//
// # Scopes
//
// The scope of a buffer says how long its contents are needed, and thus how much memory it takes.
// Tile is within one tile of one stage. Block is from one stage to another. Batch is until the
// engine has read them. Buffers of scope Tile whose lifetimes do not overlap share a slot.
package program
