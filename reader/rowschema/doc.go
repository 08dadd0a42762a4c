// Package rowschema says what the rows of a file mean: its format, its columns with their roles, and
// what becomes of their cells. It reads and writes no files.
//
//	Schema
//	  Format, Header, Delimiter, …  how rows are written
//	  Columns
//	    Role                        label, dense, sparse, weight, ignored
//	    Transforms                  a number -> a dense feature, or the number of a bucket
//	    Separator, WeightSeparator  a cell -> a bag of values
//	    IndexRange, FieldNumber     which tokens of LibSVM and LibFFM are the column's
//	    Stored                      the type in a Parquet file that is written
//	  Label                         a number -> the label
//
// A schema comes from a job file or from the input. WithDefaults fills in what its format implies,
// and Validate reports what is wrong with it. Everything else in this package follows from a schema
// alone: the names of features and fields in their order, the key of a value (KeyOf), the index
// ranges of a LibSVM file that is written (WithIndices), and the statistics that standardize steps
// take from a first scan of the data (Statistics).
package rowschema
