package jobparts

import (
	"cmp"
	"fmt"
	"slices"

	"aibox/configs"
)

// ColumnChanges calls changed for what is not the same about the columns that both jobs have.
func ColumnChanges(earlier, job *configs.Job, changed func(column, what, before, now string)) {
	for _, now := range job.Data.Columns {
		i := slices.IndexFunc(earlier.Data.Columns, func(c configs.Column) bool { return c.Name == now.Name })
		if i < 0 {
			continue
		}
		before := earlier.Data.Columns[i]
		// The values are compared as text, so that pointers compare by what they point
		// at.
		for _, f := range []struct {
			name        string
			before, now string
		}{
			{"role", before.Role, now.Role},
			{"pooling", cmp.Or(before.Pooling, earlier.Model.Pooling), cmp.Or(now.Pooling, job.Model.Pooling)},
			{"space", cmp.Or(before.Space, before.Name), cmp.Or(now.Space, now.Name)},
			{"transform", transformText(before.Transform), transformText(now.Transform)},
			{"missing", missingText(before.Missing), missingText(now.Missing)},
			{"separator", before.Separator + " " + before.WeightSeparator, now.Separator + " " + now.WeightSeparator},
		} {
			if f.before != f.now {
				changed(now.Name, f.name, f.before, f.now)
			}
		}
	}
}

func transformText(steps []configs.Transform) string {
	text := ""
	for _, s := range steps {
		text += fmt.Sprintf("%s(mean %s, std %s, min %s, max %s, boundaries %v) ", s.Kind,
			numberText(s.Mean), numberText(s.Std), numberText(s.Min), numberText(s.Max), s.Boundaries)
	}
	return text
}

// missingText is the value of a missing cell. An indicator, which is a feature of its own,
// leaves it 0.
func missingText(missing configs.NumberOrWord) string {
	if missing == configs.MissingIndicator {
		return "0"
	}
	return string(missing)
}

func numberText(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
