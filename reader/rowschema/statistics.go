package rowschema

import (
	"fmt"
	"slices"
)

// Statistics is what a first scan of the data found: the numbers that standardize
// steps need and the job file does not give. It is stored with a model, so that
// predictions apply the same transforms as training.
type Statistics struct {
	Examples  int64              `json:"examples"`
	Positives int64              `json:"positives"`
	BaseRate  float64            `json:"base_rate"` // Positives / Examples
	Columns   []ColumnStatistics `json:"columns"`
}

// ColumnStatistics are the mean and the standard deviation (of the population)
// of the numbers that enter the Step-th transform of a column, missing cells
// left out.
type ColumnStatistics struct {
	Column string  `json:"column"`
	Step   int     `json:"step"`
	Count  int64   `json:"count"`
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"`
}

// Apply stores the statistics in the standardize steps that they are about. The
// schema's slices are replaced, not written to, so copies of it stay as they
// were. It fails if the schema has no such step, or if a step still lacks its numbers.
func (s *Statistics) Apply(schema *Schema) error {
	columns := slices.Clone(schema.WithDefaults().Columns)
	for i := range columns {
		columns[i].Transforms = slices.Clone(columns[i].Transforms)
	}
	filled := *schema
	filled.Columns = columns
	indices := filled.ColumnIndices()
	for _, c := range s.Columns {
		i, found := indices[c.Column]
		if !found || c.Step < 0 || c.Step >= len(columns[i].Transforms) || columns[i].Transforms[c.Step].Kind != TransformStandardize {
			return fmt.Errorf("reader: the statistics of column %q are for its transform %d, which is not a standardize step in the schema", c.Column, c.Step+1)
		}
		t := &columns[i].Transforms[c.Step]
		if !t.HasMeanStd {
			t.Mean, t.Std, t.HasMeanStd = c.Mean, c.Std, true
		}
	}
	if column := filled.unscanned(); column != nil {
		return fmt.Errorf("reader: no statistics for column %q", column.Name)
	}
	*schema = filled
	return nil
}

// NeedsScan says whether a standardize step lacks its mean and std.
func (s *Schema) NeedsScan() bool { return s.unscanned() != nil }

// unscanned is the first column with such a step; nil if there is none.
func (s *Schema) unscanned() *Column {
	for i := range s.Columns {
		for j := range s.Columns[i].Transforms {
			if t := &s.Columns[i].Transforms[j]; t.Kind == TransformStandardize && !t.HasMeanStd {
				return &s.Columns[i]
			}
		}
	}
	return nil
}
