package reader

import "aibox/reader/internal/faults"

// Counts says how far reading has come. Shares of the input are measured in bytes,
// since the number of rows is not known beforehand.
type Counts struct {
	Rows      int64 `json:"rows"`      // good and bad
	Examples  int64 `json:"examples"`  // handed on, after sampling
	Positives int64 `json:"positives"` // of Examples
	Dropped   int64 `json:"dropped"`   // negatives that sampling left out
	faults.Counts
	BytesRead  int64 `json:"bytes_read"`  // stored bytes of the input that were decoded
	BytesTotal int64 `json:"bytes_total"` // stored bytes of the input
}
