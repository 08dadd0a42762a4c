// Package jobparts turns a job that package configs has checked into the options of the packages
// that do the work, and into the parts of a model that follow from the job file alone.
//
//	reading     the schema, and options of the reader; for training, and for a first look at data
//	model       the network over the fields of a schema, and the embedding space of each field
//	optimizers  of dense parameters and of rows, and the schedule
//	table       the options of the table, and what a row consists of
//	priority    whether rows are saved by priority, and in how much memory
//
// Make makes all parts that a run begins with, and reports all faults found on the way at once.
//
// Nothing here opens a file of the job or changes anything, so a job can be checked, and its memory
// be forecast, before it runs. Both those that have a job and those that have a model trained with
// it use this package, so they interpret its data and its model in the same way.
package jobparts
