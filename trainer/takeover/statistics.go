package takeover

import (
	"encoding/json"
	"fmt"
	"slices"

	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/trainer/modeldir"
)

// Statistics returns those statistics of an earlier model's data that a job with the schema now
// goes on with, so that the model's weights get inputs of the same scale as before.
func Statistics(saved *modeldir.Model, now *reader.Schema) (s reader.Statistics, err error) {
	if err := json.Unmarshal(saved.Statistics, &s); err != nil {
		return s, fmt.Errorf("statistics of the earlier model in %s: %w", saved.Name, err)
	}
	_, before, err := earlierJob(saved)
	if err != nil {
		return s, err
	}
	keepStatistics(&s, &before, now)
	return s, nil
}

// keepStatistics leaves of the statistics of a model with the schema before those that now, a
// schema, goes on with: of standardize steps that have no numbers of their own in either, and whose
// numbers come from the same transforms. Those of log1p say nothing about numbers without it, and a
// model that was trained with the numbers of its job does not know those that a night before it had
// found.
func keepStatistics(s *reader.Statistics, before, now *reader.Schema) {
	s.Columns = slices.DeleteFunc(s.Columns, func(c reader.ColumnStatistics) bool {
		old, steps := stepsTo(before, c), stepsTo(now, c)
		return steps == nil || !slices.Equal(old, steps)
	})
}

// stepsTo are the kinds of a column's transforms up to the one that c is about; nil: that is no
// standardize step, or the schema has its numbers.
func stepsTo(s *reader.Schema, c reader.ColumnStatistics) (kinds []rowschema.TransformKind) {
	for i := range s.Columns {
		col := &s.Columns[i]
		if col.Name != c.Column || c.Step < 0 || c.Step >= len(col.Transforms) {
			continue
		}
		if t := col.Transforms[c.Step]; t.Kind != rowschema.TransformStandardize || t.HasMeanStd {
			return nil
		}
		for _, t := range col.Transforms[:c.Step+1] {
			kinds = append(kinds, t.Kind)
		}
	}
	return kinds
}
