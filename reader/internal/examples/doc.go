// Package examples makes examples of rows. It reads no files: it gets lines of text, and columns of Parquet.
//
//	Schema, Wish --New--> Plan
//
//	names of a header, directories --MapCells--> CellMap --NewDecoder--> Decoder --Decode(line)--v
//	                                  lines of LibSVM, LibFFM            Decoder --Decode(line)--> List
//	footer --Shared.Find--> Leaves --NewRowGroup--> RowGroup --Many(rows), Decode(row)-----^
//
// A Plan is compiled of a schema, and shared by all workers. For each file it says where the
// columns are that it wants: in which cell of a line, in which leaf of Parquet, or in the name of which
// directory. What a file lacks is an error that says what was probably meant (missing.go).
//
// A decoder appends one example to a List, column by column, and returns the fault of a bad row.
// Whoever calls it then ends the row with EndGood or EndBad, and knows its file and its number. What a
// single cell becomes is the same in all formats, and is said in cells.go.
//
// A RowGroup decodes simple columns in bulk (convert.go, rowgroup_many.go), and those rows one by one of
// which a value is at fault (rowgroup_row.go).
package examples
