package sparsetable

import (
	"fmt"
	"math"
)

// Layout is the fixed shape of every row of a table, in 32-bit words:
//
//	0            ValueDim       ValueDim+StateDim      +1      +2        +3
//	+------------+--------------+----------------------+-------+---------+--------+
//	| values     | state        | show                 | click | lastSeen| count  |
//	| float32 x  | float32 x    | float32              | f32   | uint32  | uint32 |
//	+------------+--------------+----------------------+-------+---------+--------+
//
// values is the learned embedding (for models with a linear part its weight
// comes first), state belongs to the row optimizer, show and click are decayed
// counts of impressions and clicks, lastSeen is the day the row was last
// trained, count the number of examples that referenced it, saturating.
//
// A row whose count is zero was created by Pull but never trained: it is a
// placeholder, and neither Scan nor Snapshot shows it. So how far pulls run
// ahead of training leaves no trace in the model.
type Layout struct {
	ValueDim int `json:"value_dim"`
	StateDim int `json:"state_dim"`
}

// statWords is the number of 32-bit words behind values and state.
const statWords = 4

// Words is the length of a row in 32-bit words.
func (l Layout) Words() int { return l.ValueDim + l.StateDim + statWords }

// Bytes is the length of a row in bytes, its key not included.
func (l Layout) Bytes() int { return 4 * l.Words() }

// Validate reports a layout that no table can hold.
func (l Layout) Validate() error {
	if l.ValueDim < 1 || l.StateDim < 0 || l.Words() > 1<<16 {
		return fmt.Errorf("sparsetable: layout with %d values and %d state words: want at least 1 and 0, at most %d in all", l.ValueDim, l.StateDim, 1<<16-statWords)
	}
	return nil
}

// Values returns the learned part of row, which has length Words().
func (l Layout) Values(row []float32) []float32 { return row[:l.ValueDim:l.ValueDim] }

// State returns the optimizer's part of row.
func (l Layout) State(row []float32) []float32 {
	return row[l.ValueDim : l.ValueDim+l.StateDim : l.ValueDim+l.StateDim]
}

// RowStats are the statistics kept with a row.
type RowStats struct {
	Show, Click float32
	LastSeen    uint32 // day number; what a day is, the caller decides
	Count       uint32 // examples that referenced the row, saturating; 0 marks a placeholder
}

// Stats reads the statistics of row.
func (l Layout) Stats(row []float32) RowStats {
	s := row[l.ValueDim+l.StateDim:]
	return RowStats{Show: s[0], Click: s[1], LastSeen: math.Float32bits(s[2]), Count: math.Float32bits(s[3])}
}

// SetStats writes the statistics of row.
func (l Layout) SetStats(row []float32, st RowStats) {
	s := row[l.ValueDim+l.StateDim:]
	s[0], s[1], s[2], s[3] = st.Show, st.Click, math.Float32frombits(st.LastSeen), math.Float32frombits(st.Count)
}
