package reader

// Counts says how far reading has come. Shares of the input are measured in bytes,
// since the number of rows is not known beforehand.
type Counts struct {
	Rows      int64 `json:"rows"`      // good and bad
	Examples  int64 `json:"examples"`  // handed on, after sampling
	Positives int64 `json:"positives"` // of Examples
	Dropped   int64 `json:"dropped"`   // negatives that sampling left out
	BadRows   int64 `json:"bad_rows"`
	// Bad lists the reasons that occurred, each with its first row.
	Bad []ReasonCount `json:"bad,omitempty"`
	// Lost lists the files of which a part could not be read. Lost rows are in none
	// of the counts above.
	Lost       []Loss `json:"lost,omitempty"`
	LostBytes  int64  `json:"lost_bytes"`  // of all files
	LostRows   int64  `json:"lost_rows"`   // of all files, known or estimated
	BytesRead  int64  `json:"bytes_read"`  // stored bytes of the input that were decoded
	BytesTotal int64  `json:"bytes_total"` // stored bytes of the input
}
