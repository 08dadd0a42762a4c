// Package hostrows is the part of a training step that works on rows of the sparse table in host
// memory. All engines that keep embeddings there share it.
//
// Rows has the pass and the unique rows of the current mini-batch. Collect updates their statistics
// and gathers their values; Update applies their gradients, on all threads. Bags has the bags of
// the mini-batch. Pool computes the network's pooled inputs from the values of rows, and RowGrad
// computes the gradients of rows from those of the pooled inputs.
//
// Threads get equal shares of the occurrences of rows, not of the rows: see fullPieces and byWork.
//
// Nothing is allocated after the first mini-batches, and no result depends on the number of threads.
package hostrows
