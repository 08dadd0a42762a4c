// Package hostrows is the part of a step of training that works on rows of the sparse table in the
// memory of the host: all engines that have their embeddings there share it.
//
// Rows has the pass and the unique rows of the current mini-batch: Collect brings their statistics up
// to date and gathers their values, Update changes the rows by their gradients, on
// all threads. Bags has the bags of the mini-batch: Pool makes a row of a network's input of the values
// of rows, and RowGrad takes the gradients of such rows back to the rows of the table.
//
// Threads get equal shares of the occurrences of rows, not of rows: see fullPieces and byWork.
//
// Nothing is allocated after the first mini-batches, and no result depends on the number of threads.
package hostrows
