package rowschema

import "testing"

func TestLabelRule(t *testing.T) {
	for op, yes := range map[string][3]float32{ // labels of 3, 4, 5
		">=": {0, 1, 1}, ">": {0, 0, 1}, "<=": {1, 1, 0}, "<": {1, 0, 0}, "==": {0, 1, 0}, "!=": {1, 0, 1},
	} {
		rule := LabelRule{Column: "r", Op: op, Value: 4}
		for i, want := range yes {
			if got, ok := rule.Label(float64(3 + i)); got != want || !ok {
				t.Errorf("%s of %d: %v", rule, 3+i, got)
			}
		}
	}
}
