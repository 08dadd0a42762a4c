// Package examples converts rows to examples. It reads no files: it gets lines of text, and columns
// of Parquet.
//
//	Schema, Options --New--> Plan
//
//	names of a header, directories --MapCells--> CellMap --NewDecoder--> Decoder --Decode(line)--v
//	                                  lines of LibSVM, LibFFM            Decoder --Decode(line)--> List
//	footer --Shared.Find--> Leaves --NewRowGroup--> RowGroup --Many(rows), Decode(row)-----^
//
// A Plan is compiled from a schema and shared by all workers. For each file it determines where the
// columns are: in which cell of a line, in which Parquet leaf, or in which directory's name. A
// missing column is an error that suggests what was probably meant (missing.go).
//
// A decoder appends one example to a List, column by column, and returns the fault of a bad row.
// The caller, who knows the row's file and number, then ends the row with EndGood or EndBad. The
// conversion of a single cell is the same in all formats; see cells.go.
//
// A RowGroup decodes simple columns in bulk (convert.go, rowgroup_many.go), and rows with a faulty
// value one by one (rowgroup_row.go).
package examples
