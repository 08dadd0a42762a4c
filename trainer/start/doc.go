// Package start finds, opens and restores the model that a run starts from.
//
// The job and its chain of models (package chain) determine which model that is. If the model's
// table has lost files, or the model is only in output.remote, it is restored: either as the model
// of the job's directory, or for this run alone, in a directory of its own that is deleted as soon
// as the run has its rows.
package start
