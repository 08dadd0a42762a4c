package trainer

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"aibox/reader"
	"aibox/trainer/report"
	"aibox/trainer/takeover"
)

// scan computes the data statistics that the schema lacks. A warm start keeps those of
// the earlier model, so that its weights get inputs of the same scale as before; only
// new columns are scanned.
func (r *run) scan(ctx context.Context) error {
	r.data.statistics = new(reader.Statistics)
	if r.Schema.NeedsScan() {
		var earlier reader.Statistics
		if r.models.previous != nil {
			var err error
			if earlier, err = takeover.Statistics(r.models.previous, &r.Schema); err != nil {
				return err
			}
		}
		if missingStatistics(&r.Schema, &earlier) {
			r.opts.Status.Begin(report.PhaseScanning, 0, 0, nil, nil)
			o := r.trainOptions(0, r.job.Data.Limit)
			o.Quarantine = r.data.quarantine
			fresh, err := reader.Scan(ctx, o)
			if err != nil {
				return fmt.Errorf("scanning data.train for means and deviations: %w", err)
			}
			// Training finds the same bad rows again and records them then.
			if err := cutQuarantine(r.data.quarantine, 0); err != nil {
				return err
			}
			r.data.statistics = fresh
		}
		for _, c := range earlier.Columns {
			same := func(o reader.ColumnStatistics) bool { return o.Column == c.Column && o.Step == c.Step }
			if i := slices.IndexFunc(r.data.statistics.Columns, same); i >= 0 {
				r.data.statistics.Columns[i] = c
			} else {
				r.data.statistics.Columns = append(r.data.statistics.Columns, c)
			}
		}
	}
	return r.applyStatistics()
}

// applyStatistics completes the schema with the data statistics.
func (r *run) applyStatistics() error {
	if r.Schema.NeedsScan() {
		if err := r.data.statistics.Apply(&r.Schema); err != nil {
			return err
		}
	}
	r.data.base.Schema = r.Schema
	return nil
}

// cutQuarantine cuts the file of bad rows to its first size bytes, and goes to their end.
func cutQuarantine(f *os.File, size int64) error {
	info, err := f.Stat()
	if err == nil && info.Size() > size {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return fmt.Errorf("quarantine file: %w", err)
	}
	return nil
}

// missingStatistics says whether the schema has a standardize step whose numbers are
// neither in the job nor in known.
func missingStatistics(s *reader.Schema, known *reader.Statistics) bool {
	for i := range s.Columns {
		for step, t := range s.Columns[i].Transforms {
			if t.Kind != reader.TransformStandardize || t.HasMeanStd {
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
