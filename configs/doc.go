// Package configs reads, checks and prints job files, and defines their schema.
//
// A job file is YAML. Load reads it into a Job with every default filled in
// and every template expanded, or reports all its faults in one go:
//
//	job.yaml:12:9: model.kind: "dlmr" is not allowed: did you mean "dlrm"? …
//	job.yaml:14:3: training.bath_size: unknown key `bath_size`: did you mean `batch_size`?
//
// # How a job file becomes a Job
//
//	text ──parse──> tree ──--set──> tree ──decode──> Job ──defaults──> Job ──check──> Job
//
// load.go goes through the steps. Package yamltree turns the YAML into nodes that know their position, and
// applies the overrides of the command line to them, so that they are checked like the rest. Package schema
// decodes the nodes into the structs of job.go by the table of keys, and fills in what was not given. Package
// jobdate expands dates and environment variables in paths. The check files look for combinations that cannot
// work. Each step goes on after a fault, so that the user sees all of them. A check whose input was faulty is
// left out: one mistake gives one message.
//
// # One source of truth
//
// The keys files hold a table with one Key per key of the job file: meaning,
// default, range or allowed values, and which kinds of model, optimizer or
// format use it. Checking, `config show`, `config init` and docs/job-file.md
// all come from it.
//
// The package imports none of the packages that do the work, and they do not
// import it: the trainer translates a Job into their options. A Job may be read
// by several goroutines at once as long as none of them changes it.
package configs
