package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// LabelRule turns a cell of Column into a label. Without Op the cell is 0 or
// 1; otherwise the label is 1 where "cell Op Threshold" holds.
type LabelRule struct {
	Column    string
	Op        string // "", >=, >, <=, <, ==, !=
	Threshold float64
}

var labelExpression = regexp.MustCompile(`^(.*?)\s*(>=|<=|==|!=|>|<)\s*(\S*)$`)

// wrongComparison matches comparisons that data.label does not know, such as => or =.
var wrongComparison = regexp.MustCompile(`[^<>=!\s]\s*(=>|=<|<>|=)\s*[^<>=!\s]`)

var meantComparison = map[string]string{"=>": ">=", "=<": "<=", "<>": "!=", "=": "=="}

// LabelRule returns the rule of data.label. The exact name of the column of role label, which is
// the default, means that column even if it looks like a comparison or has spaces at its ends.
func (d *Data) LabelRule() (LabelRule, error) {
	if slices.ContainsFunc(d.Columns, func(c Column) bool { return c.Role == "label" && c.Name == d.Label }) {
		return LabelRule{Column: d.Label}, nil
	}
	return parseLabel(d.Label)
}

// parseLabel reads a column, or a column with a threshold such as "rating >= 4".
func parseLabel(text string) (LabelRule, error) {
	text = strings.TrimSpace(text)
	if m := wrongComparison.FindStringSubmatch(text); m != nil {
		return LabelRule{}, fmt.Errorf("%s is not a label: %s is not a comparison, did you mean %s?", nearest.Quote(text), m[1], meantComparison[m[1]])
	}
	m := labelExpression.FindStringSubmatch(text)
	if m == nil {
		if text == "" || strings.Contains(text, "=") {
			return LabelRule{}, fmt.Errorf(`%s is not a label: write a column or a comparison such as "rating >= 4" (>=, >, <=, <, ==, !=)`, nearest.Quote(text))
		}
		return LabelRule{Column: text}, nil
	}
	x, err := yamltree.ParseFloat(m[3])
	if m[1] == "" || err != nil {
		return LabelRule{}, fmt.Errorf(`%s is not a label: write a comparison of a column with a number, such as "rating >= 4"`, nearest.Quote(text))
	}
	return LabelRule{Column: m[1], Op: m[2], Threshold: x}, nil
}
