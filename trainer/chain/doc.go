// Package chain says from which model a run starts: it follows the models of a job from night to
// night, each of which was made from the one before.
//
// training.warm_start: latest stands for the newest model of an earlier run in the chain of a job.
// It is searched for in output.model_dir and, if that has a date in it, in the directories that it
// names at earlier dates. In each directory the candidate is the published model. If that is of the
// same night as the job, or of a later one, the candidate is the model from which it was made, and
// so on. So a night that is trained again starts from the same model as before, and no data are
// trained twice. If that model is gone from a directory that several nights share, no older model
// in earlier directories takes its place. A job without a date starts from the published model.
//
// The package reads only manifests. Package start opens the models, and restores those that are
// gone from this machine.
package chain
