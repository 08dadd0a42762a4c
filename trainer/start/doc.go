// Package start finds, opens and restores the model that a run starts from.
//
// Which model that is follows from the job and its chain of models (package chain). The model's
// table may have lost files, or the model may only be in output.remote. Then it is restored, either
// as the model of the job's directory or for this run alone, in a directory of its own that is
// deleted as soon as the run has its rows.
package start
