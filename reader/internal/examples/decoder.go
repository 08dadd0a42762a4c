package examples

import "aibox/reader/internal/faults"

// decoder appends the example of one line to a list, or says what is wrong
// with it; the caller then ends the good or bad row.
type decoder interface {
	Decode(line []byte, l *List) faults.Fault
}

// NewDecoder makes a decoder for lines of text; those that have cells have them as m says.
func (p *Plan) NewDecoder(m *CellMap) decoder {
	if p.Schema.Format.Indexed() {
		return newTokens(p)
	}
	return newDelimited(p, m)
}
