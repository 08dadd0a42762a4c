package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/takeover"
)

// Scan computes the statistics that schema lacks, and completes schema with them. A warm start
// keeps the statistics of the earlier model (previous, which may be nil), so that its weights get
// inputs on the same scale as before. Only new columns are scanned.
func (d *Data) Scan(ctx context.Context, schema *reader.Schema, previous *modeldir.Model) error {
	d.Statistics = new(reader.Statistics)
	if schema.NeedsScan() {
		var earlier reader.Statistics
		if previous != nil {
			var err error
			if earlier, err = takeover.Statistics(previous, schema); err != nil {
				return err
			}
		}
		if missingStatistics(schema, &earlier) {
			d.status.Begin(report.PhaseScanning, 0, 0, nil, nil)
			o := d.TrainOptions(0, d.job.Data.Limit)
			o.Quarantine = d.Quarantine
			fresh, err := reader.Scan(ctx, o)
			if err != nil {
				return fmt.Errorf("scanning data.train for means and deviations: %w", err)
			}
			// Training finds the same bad rows again and records them then.
			if err := d.Quarantine.Cut(0); err != nil {
				return err
			}
			d.Statistics = fresh
		}
		for _, c := range earlier.Columns {
			same := func(o reader.ColumnStatistics) bool { return o.Column == c.Column && o.Step == c.Step }
			if i := slices.IndexFunc(d.Statistics.Columns, same); i >= 0 {
				d.Statistics.Columns[i] = c
			} else {
				d.Statistics.Columns = append(d.Statistics.Columns, c)
			}
		}
	}
	return d.ApplyStatistics(schema)
}

// ApplyStatistics completes the schema with the statistics.
func (d *Data) ApplyStatistics(schema *reader.Schema) error {
	if schema.NeedsScan() {
		if err := d.Statistics.Apply(schema); err != nil {
			return err
		}
	}
	d.base.Schema = *schema
	return nil
}

// StatisticsFile returns the statistics in the form that a model stores.
func (d *Data) StatisticsFile() ([]byte, error) {
	return json.MarshalIndent(d.Statistics, "", "  ")
}

// missingStatistics reports whether the schema has a standardize step whose mean and deviation are
// neither in the job nor in known.
func missingStatistics(s *reader.Schema, known *reader.Statistics) bool {
	for i := range s.Columns {
		for step, t := range s.Columns[i].Transforms {
			if t.Kind != rowschema.TransformStandardize || t.HasMeanStd {
				continue
			}
			if !slices.ContainsFunc(known.Columns, func(c reader.ColumnStatistics) bool {
				return c.Column == s.Columns[i].Name && c.Step == step
			}) {
				return true
			}
		}
	}
	return false
}
