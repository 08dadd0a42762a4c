package jobparts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"aibox/configs"
)

// ColumnChanges calls changed for each difference between the columns that both jobs use.
func ColumnChanges(earlier, job *configs.Job, changed func(column, what, before, now string)) {
	for _, now := range job.Data.Columns {
		i := slices.IndexFunc(earlier.Data.Columns, func(c configs.Column) bool { return c.Name == now.Name })
		if i < 0 || now.Role == "ignore" || earlier.Data.Columns[i].Role == "ignore" {
			continue
		}
		before := earlier.Data.Columns[i]
		if before.Role != now.Role {
			changed(now.Name, "role", before.Role, now.Role) // all else follows from it
			continue
		}
		for _, f := range []struct {
			name        string
			before, now string
			same        bool
		}{
			{"pooling", cmp.Or(before.Pooling, earlier.Model.Pooling), cmp.Or(now.Pooling, job.Model.Pooling), now.Role != "sparse"},
			{"space", cmp.Or(before.Space, before.Name), cmp.Or(now.Space, now.Name), false},
			{"transform", transformText(before.Transform), transformText(now.Transform), false},
			{"missing", string(before.Missing), string(now.Missing), missingValue(before.Missing) == missingValue(now.Missing)},
			{"separator", before.Separator, now.Separator, false},
			{"weight_separator", before.WeightSeparator, now.WeightSeparator, false},
			{"range[0]", firstIndex(before), firstIndex(now), false},
			{"field", fieldText(before), fieldText(now), false},
		} {
			if f.before != f.now && !f.same {
				changed(now.Name, f.name, f.before, f.now)
			}
		}
	}
}

// transformText returns a list of transforms as it may be written in a job file.
func transformText(steps []configs.Transform) string {
	var texts []string
	for _, s := range steps {
		var options []string
		for _, o := range []struct {
			name  string
			value *float64
		}{{"mean", s.Mean}, {"std", s.Std}, {"min", s.Min}, {"max", s.Max}} {
			if o.value != nil {
				options = append(options, fmt.Sprintf("%s: %g", o.name, *o.value))
			}
		}
		if s.Boundaries != nil {
			options = append(options, fmt.Sprintf("boundaries: %v", s.Boundaries))
		}
		if text := strings.Join(options, ", "); text != "" {
			texts = append(texts, fmt.Sprintf("%s {%s}", s.Kind, text))
		} else {
			texts = append(texts, s.Kind)
		}
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// missingValue returns the value of a missing cell. With an indicator, which is a feature of its
// own, it is 0.
func missingValue(missing configs.NumberOrWord) string {
	if missing == configs.MissingIndicator {
		return "0"
	}
	return string(missing)
}

// firstIndex returns the index that counts as 0 in a column of LibSVM.
func firstIndex(c configs.Column) string {
	if len(c.Range) == 0 {
		return "0"
	}
	return fmt.Sprint(c.Range[0])
}

// fieldText returns the field of LibFFM that a column stands for.
func fieldText(c configs.Column) string {
	if c.Field == nil {
		return ""
	}
	return fmt.Sprint(*c.Field)
}
