package parquetcolumn

import "fmt"

// Fault says that nothing can be read of a file, and why.
type Fault struct {
	Err     error
	Damaged bool // it is a Parquet file, but its footer is damaged or missing; else it is another file
	Cut     bool // the end of the damaged file is missing
}

func (e *Fault) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Fault) Unwrap() error { return e.Err }

func another(format string, args ...any) error { return &Fault{Err: fmt.Errorf(format, args...)} }

func damaged(format string, args ...any) error {
	return &Fault{Err: fmt.Errorf("damaged Parquet file: "+format, args...), Damaged: true}
}

func truncated(format string, args ...any) error {
	return &Fault{Err: fmt.Errorf("truncated Parquet file: "+format, args...), Damaged: true, Cut: true}
}
