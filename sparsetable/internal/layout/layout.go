package layout

import (
	"fmt"
	"math"

	"aibox/internal/half"
)

// Layout is the fixed shape of every row of a table, in 32-bit words:
//
//	0            V              V+StateDim             +1      +2        +3
//	+------------+--------------+----------------------+-------+---------+--------+
//	| values     | state        | show                 | click | lastSeen| count  |
//	| V words    | float32 x    | float32              | f32   | uint32  | uint32 |
//	+------------+--------------+----------------------+-------+---------+--------+
//
// values is the learned embedding; in models with a linear part, the weight of that part comes
// first. state belongs to the row optimizer. show and click are decayed counts of the row's
// occurrences in training and of those in clicked examples. lastSeen is the day on which the row
// was last trained. count is the number of its occurrences; it saturates. A value that appears
// twice in a bag, or in two fields of one embedding space, occurs twice in that example.
//
// Format says how the values are encoded. V is ValueDim for float32. For the 16-bit
// formats it is half of that, rounded up, because two values share a word: value 2w
// is in the low half of word w, and value 2w+1 in the high half. With an odd
// ValueDim the high half of the last word is zero. Any ValueDim is possible in
// every format.
//
// A row whose count is zero was created by Pull but never trained: it is called a
// placeholder, and Scan and Snapshot leave it out. So it makes no difference to the
// model how far pulls run ahead of training.
type Layout struct {
	ValueDim int         `json:"value_dim"`
	StateDim int         `json:"state_dim"`
	Format   ValueFormat `json:"value_format"`
}

// statWords is the number of 32-bit words behind values and state.
const statWords = 4

// maxWords bounds the length of a row.
const maxWords = 1 << 16

// valueWords is the number of words that the values take.
func (l Layout) valueWords() int {
	if l.Format == Float32 {
		return l.ValueDim
	}
	return half.Words(l.ValueDim)
}

// Words is the length of a row in 32-bit words.
func (l Layout) Words() int { return l.valueWords() + l.StateDim + statWords }

// Bytes is the length of a row in bytes, its key not included.
func (l Layout) Bytes() int { return 4 * l.Words() }

// Validate returns an error for a layout that no table can hold.
func (l Layout) Validate() error {
	if l.Format >= valueFormats {
		return fmt.Errorf("sparsetable: unknown value format %d", l.Format)
	}
	if l.ValueDim < 1 || l.StateDim < 0 || l.StateDim > maxWords || l.ValueDim > 2*maxWords || l.Words() > maxWords {
		return fmt.Errorf("sparsetable: layout with %v: want at least 1 value and 0 words of state, at most %d words in all", l, maxWords-statWords)
	}
	return nil
}

// String describes the layout in words.
func (l Layout) String() string {
	return fmt.Sprintf("%d %v values and %d words of state", l.ValueDim, l.Format, l.StateDim)
}

// Values returns the learned part of row, which has length Words(), to be read and
// written. REQUIRES: Format is Float32. LoadValues and StoreValues work with every
// format.
func (l Layout) Values(row []float32) []float32 {
	if l.Format != Float32 {
		panic("sparsetable: Layout.Values of 16-bit values")
	}
	return row[:l.ValueDim:l.ValueDim]
}

// LoadValues copies the learned part of row, which has length Words(), into
// dst, of length ValueDim, as float32.
func (l Layout) LoadValues(dst, row []float32) {
	switch l.Format {
	case Float16:
		half.UnpackFloat16(dst[:l.ValueDim], row[:l.valueWords()])
	case BFloat16:
		half.UnpackBFloat16(dst[:l.ValueDim], row[:l.valueWords()])
	default:
		copy(dst[:l.ValueDim], row)
	}
}

// StoreValues makes src, of length ValueDim, the learned part of the row of key, which has length
// Words(). In a 16-bit format it rounds stochastically with r's random bits for key; a value that
// LoadValues returned and that was not changed is stored exactly. With Float32, key and r are not
// used.
func (l Layout) StoreValues(row, src []float32, key uint64, r Rounding) {
	switch l.Format {
	case Float16:
		half.PackFloat16(row[:l.valueWords()], src[:l.ValueDim], r.bits.Bits(key))
	case BFloat16:
		half.PackBFloat16(row[:l.valueWords()], src[:l.ValueDim], r.bits.Bits(key))
	default:
		copy(row, src[:l.ValueDim])
	}
}

// State returns the optimizer's part of row, which has length Words().
func (l Layout) State(row []float32) []float32 {
	end := len(row) - statWords
	return row[end-l.StateDim : end : end]
}

// RowStats are the statistics kept with a row.
type RowStats struct {
	Show, Click float32
	LastSeen    uint32 // number of a day, by the caller's calendar
	Count       uint32 // occurrences in training, saturating; 0 marks a placeholder
}

// Trained reports whether row is not a placeholder.
func Trained(row []float32) bool { return math.Float32bits(row[len(row)-1]) != 0 }

// Stats reads the statistics of row, which has length Words().
func (l Layout) Stats(row []float32) RowStats {
	s := row[len(row)-statWords:]
	return RowStats{Show: s[0], Click: s[1], LastSeen: math.Float32bits(s[2]), Count: math.Float32bits(s[3])}
}

// SetStats writes the statistics of row, which has length Words().
func (l Layout) SetStats(row []float32, st RowStats) {
	s := row[len(row)-statWords:]
	s[0], s[1], s[2], s[3] = st.Show, st.Click, math.Float32frombits(st.LastSeen), math.Float32frombits(st.Count)
}
