// Package cmdline has what subcommands share: the flags for job files and dates (job.go), templates
// in arguments (templates.go), the logger that the flags ask for (log.go), and the output of
// results (output.go).
package cmdline
