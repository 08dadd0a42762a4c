// Package chain says from which model a run starts: it follows the models of a job from night to
// night, each of which was made from the one before.
//
// training.warm_start: latest stands for the newest model of an earlier run in the chain
// of a job: in output.model_dir and, if that has a date in it, in the directories that it
// names at earlier dates. In a directory it is the published model or, if that is of the
// same night as the job or of a later one, the model from which it was made, and so on:
// so a night that is trained again starts from the model that it started from before, and
// no data are trained twice. Where that model is gone from a directory of several nights,
// no older one in the directories before takes its place. A job without a date starts from
// the published model.
//
// The package reads manifests alone. Package start opens the models, and restores those that are
// gone from this machine.
package chain
