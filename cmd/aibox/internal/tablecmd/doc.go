// Package tablecmd implements `aibox table`, with one file per subcommand. find.go finds the table
// that a command line names by its model, by a job file or by its own directory. ofmodel.go refuses
// to replace the snapshot of a model's table. make.go creates a table for an import.
package tablecmd
