// Package parquetcolumn reads and writes the columns of Parquet files as texts and numbers. It knows
// types, pages and damage, but nothing of labels, features and rows that are bad.
//
//	Open --File--> Find --Leaf--> File.Column --Column--> Next, Text, Number     value by value
//	                                             '------> Result, Places          in bulk
//
// # Reading
//
// A File is one whose footer has been read. It finds a column by its name as a Leaf: the column
// itself, or the element of a list. Lists of lists, structs, maps and int96 are not supported. A
// Column walks over the rows of one row group: Next returns the values of a row one after the
// other, Text is a value as a CSV file would have it, and Number is one as a number.
//
// Most columns are simple, and decoded many values at a time: a Converter then makes a Result of
// each value of a page, or of its dictionary, and leaves to Next what it has no result for. Places
// say where the results of many rows are: in the dictionary itself, if the column has one, so that they
// are copied once. All ways yield the same.
//
// Damaged data make the Parquet library fail or panic, as failed reads do. File.Guard makes errors
// of panics, and File.Failure tells failed reads from damage.
//
// # Writing
//
// A Writer is the inverse: it writes rows of text in columns of given types. A value of a column
// that has the type that Leaf.Stored names is read back as the same text.
//
// Several goroutines may read different row groups of a File. A Column and a Writer are for one.
package parquetcolumn
