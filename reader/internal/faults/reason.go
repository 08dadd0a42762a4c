package faults

import "fmt"

// Reason says what is wrong with a bad row.
type Reason uint8

// The reasons.
const (
	None Reason = iota
	ReasonColumns
	ReasonNumber
	ReasonNotFinite
	ReasonLabel
	ReasonNoLabel
	ReasonWeight
	ReasonFeature
	ReasonUTF8
	ReasonQuote
	ReasonTooLong
	ReasonStream
	ReasonOutput // convert
	reasonCount
)

var reasonTexts = [reasonCount]string{
	ReasonColumns:   "wrong column count",
	ReasonNumber:    "unparsable number",
	ReasonNotFinite: "number is not finite",
	ReasonLabel:     "label is not 0 or 1",
	ReasonNoLabel:   "label is missing",
	ReasonWeight:    "example weight is not a number >= 0",
	ReasonFeature:   "malformed feature",
	ReasonUTF8:      "invalid UTF-8",
	ReasonQuote:     "bad quoting (a quoted cell must end on its line)",
	ReasonTooLong:   "line too long",
	ReasonStream:    "data are lost", // see Loss; it is in the quarantine, but not among the counts of bad rows
	ReasonOutput:    "cell that the output format cannot hold",
}

// String describes the reason in a few words.
func (r Reason) String() string {
	if r > None && r < reasonCount {
		return reasonTexts[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// MarshalText is String.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (r *Reason) UnmarshalText(text []byte) error {
	for i := None + 1; i < reasonCount; i++ {
		if reasonTexts[i] == string(text) {
			*r = i
			return nil
		}
	}
	return fmt.Errorf("reader: unknown reason %q", text)
}
