// Package cmdline is what subcommands share: the flags of job files and dates (job.go), templates
// in arguments (templates.go), the log that the flags ask for (log.go), and results (output.go).
package cmdline
