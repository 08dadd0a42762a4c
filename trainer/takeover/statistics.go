package takeover

import (
	"encoding/json"
	"fmt"
	"slices"

	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/trainer/modeldir"
)

// Statistics returns the statistics of an earlier model's data that a job with the schema now keeps
// using, so that the model's weights get inputs on the same scale as before.
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

// keepStatistics removes from s, the statistics of a model with the schema before, those that the
// schema now does not keep using. It keeps those of standardize steps that have no mean and
// deviation of their own in either schema, and that follow the same transforms. Statistics after
// log1p say nothing about values without it, and a model that was trained with the numbers of its
// job does not know those that an earlier night had found.
func keepStatistics(s *reader.Statistics, before, now *reader.Schema) {
	s.Columns = slices.DeleteFunc(s.Columns, func(c reader.ColumnStatistics) bool {
		old, steps := stepsTo(before, c), stepsTo(now, c)
		return steps == nil || !slices.Equal(old, steps)
	})
}

// stepsTo returns the kinds of a column's transforms up to the one that c is about; nil if that is
// not a standardize step, or the schema has its mean and deviation.
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
