package faults

import "fmt"

// BadRow is one bad row, as written to the quarantine file.
type BadRow struct {
	URI string `json:"uri"`
	// Line counts from 1, header and empty lines included; in Parquet it is the
	// number of the row.
	Line int64 `json:"line"`
	// Offset of the row's first byte in the file, after decompression; -1 in
	// Parquet.
	Offset int64  `json:"offset"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"` // column and cell
	Row    string `json:"row"`              // the first bytes; U+FFFD replaces what is not UTF-8
	// RowBase64 holds the same bytes as they are, where they are not UTF-8.
	RowBase64 string `json:"row_base64,omitempty"`
	// LostBytes and LostRows say how much is lost from here on; see Loss.
	LostBytes int64 `json:"lost_bytes,omitempty"`
	LostRows  int64 `json:"lost_rows,omitempty"`
}

// String is one line for people.
func (b BadRow) String() string {
	where := fmt.Sprintf("%s line %d (byte %d)", b.URI, b.Line, b.Offset)
	if b.Offset < 0 {
		where = fmt.Sprintf("%s row %d", b.URI, b.Line)
	}
	if b.Detail != "" {
		return fmt.Sprintf("%s: %s: %s", where, b.Reason, b.Detail)
	}
	return fmt.Sprintf("%s: %s", where, b.Reason)
}

// ReasonCount is how many rows were bad for one reason.
type ReasonCount struct {
	Reason  Reason `json:"reason"`
	Rows    int64  `json:"rows"`
	Example BadRow `json:"example"` // the first
}

// String describes the count for an error about the most frequent reason.
func (c ReasonCount) String() string {
	what := fmt.Sprintf("the most frequent reason (%d) is: %s, for the first time at %s", c.Rows, c.Reason, c.Example)
	switch c.Reason {
	case ReasonColumns:
		what += "; every line is a row, also one that ends within quotation marks"
	case ReasonNumber:
		what += "; data.null_values lists cells that mean a missing value, a column of text has role: sparse, and a label is a number, or false or true"
	case ReasonTooLong:
		what += "; data.max_line_bytes says how long a line may be"
	case ReasonLabel:
		what += "; where the column holds other numbers, data.label says which of them mean 1, as in \"clicks > 0\""
	}
	return what
}
