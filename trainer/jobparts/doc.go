// Package jobparts makes of a job, which package configs has checked, what the packages need that do the
// work: their options, and the parts of a model that follow from the job file alone.
//
//	reading     the schema, and options of the reader; for training, and for a first look at data
//	model       the network over the fields of a schema, and the embedding space of each field
//	optimizers  of dense parameters and of rows, and the schedule
//	table       the options of the table, and what a row consists of
//	priority    whether rows are saved by priority, and in how much memory
//
// Make makes all parts that a run begins with, and reports at once every fault that is found on the way.
//
// Nothing here opens a file of the job or changes anything, so that a job can be checked, and what
// it takes be forecast, before it runs. Who has a job and who has a model that was trained with it
// ask here, so that they understand its data and its model in the same way.
package jobparts
