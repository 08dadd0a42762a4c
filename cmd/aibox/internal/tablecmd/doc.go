// Package tablecmd is `aibox table`: one file per subcommand. find.go finds the table that a
// command line names, by its model, by a job file or by its own directory; ofmodel.go keeps
// commands that replace a table's snapshot from doing it to one of a model, and make.go makes a
// table for an import.
package tablecmd
