package rowschema

import (
	"bytes"
	"fmt"
	"slices"

	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
)

// LabelRule says how an example gets its label. The zero rule takes the column
// of role label, which must hold 0 or 1. With an Op the label is 1 where
// "Column Op Value" holds and 0 elsewhere.
type LabelRule struct {
	Column string // "": the column of role label
	Op     string // "" (the cell is 0 or 1), or one of >=, >, <=, <, ==, !=
	Value  float64
}

// labelOps are the comparisons.
var labelOps = []string{">=", "<=", "==", "!=", ">", "<"}

// String is the rule as job files have it.
func (r LabelRule) String() string {
	if r.Op == "" {
		return r.Column
	}
	return fmt.Sprintf("%s %s %v", r.Column, r.Op, r.Value)
}

// Label applies the rule to a number; ok is false where the rule wants 0 or 1
// and the number is neither.
func (r *LabelRule) Label(x float64) (label float32, ok bool) {
	var yes bool
	switch r.Op {
	case "":
		return float32(x), x == 0 || x == 1
	case ">=":
		yes = x >= r.Value
	case ">":
		yes = x > r.Value
	case "<=":
		yes = x <= r.Value
	case "<":
		yes = x < r.Value
	case "==":
		yes = x == r.Value
	case "!=":
		yes = x != r.Value
	}
	if yes {
		return 1, true
	}
	return 0, true
}

// Text is the label as a cell: 0 or 1 where the rule has a comparison and where the cell
// is true or false, otherwise the cell as it is. An empty cell stays empty.
func (r *LabelRule) Text(cell []byte) ([]byte, error) {
	trimmed := number.Trim(cell)
	_, truth := truthValue(trimmed)
	if (r.Op == "" && !truth) || len(trimmed) == 0 {
		return cell, nil
	}
	x, ok := LabelNumber(trimmed)
	if !ok || !number.Finite(x) {
		return nil, fmt.Errorf("column %s: the label %s is not a number", r.Column, rowtext.Shown(cell))
	}
	if yes, _ := r.Label(x); yes == 1 {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}

// LabelNumber is the number that a cell of the label means, without spaces around it: true and false,
// which Python and SQL write for the booleans of a table, are 1 and 0, as they are in Parquet.
func LabelNumber(cell []byte) (x float64, ok bool) {
	if x, ok = number.Float64(cell); ok {
		return x, true
	}
	return truthValue(cell)
}

func truthValue(cell []byte) (x float64, ok bool) {
	if len(cell) == len("true") && bytes.EqualFold(cell, []byte("true")) {
		return 1, true
	}
	return 0, len(cell) == len("false") && bytes.EqualFold(cell, []byte("false"))
}

func (r *LabelRule) check() error {
	if r.Op == "" {
		return nil
	}
	if slices.Contains(labelOps, r.Op) {
		return nil
	}
	return fmt.Errorf("label rule %q: unknown comparison %q; known are %v", r.String(), r.Op, labelOps)
}
