// Package start finds, opens and restores the model that a run starts from.
//
// Which one it is follows from the job and its chain of models (package chain). Its table may have
// lost files, or it may not be on this machine any more, while output.remote has it: then it is
// restored, either as the model of the job's directory, or for this run alone, in a directory of
// its own which is deleted as soon as the run has its rows.
package start
