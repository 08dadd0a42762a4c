package trainer

import (
	"context"
	"errors"
	"fmt"
	"os"

	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/trainer/jobparts"
	"aibox/trainer/report"
)

// dataset is what a run reads. The files are those that were listed at its start: the check
// of the data, the scan, every epoch and every evaluation read exactly these. Files that
// arrive during the run are ignored, and a file that changes ends the run.
type dataset struct {
	sources     *source.Sources
	base        reader.Options  // for every reading of the data
	train, eval *source.Listing // eval is nil without data.eval
	statistics  *reader.Statistics
	quarantine  *os.File
	split       *reader.Split // of train into what is trained on and what is held out; nil: all is trained on
}

// listData lists the data of the run. If data for training and for evaluation do not
// exist, the error names both.
func (r *run) listData(ctx context.Context) error {
	var missing, err error
	if r.data.train, missing = r.list(ctx, "data.train", r.job.Data.Train); missing != nil && !errors.Is(missing, source.ErrNotFound) {
		return missing
	}
	r.data.eval, err = r.list(ctx, "data.eval", r.job.Data.Eval)
	for _, text := range r.data.warnings() {
		r.log.Warn(text)
	}
	return errors.Join(missing, err)
}

// warnings says what looks wrong with the files.
func (d *dataset) warnings() []string { return append(d.repeated(), d.withoutBytes()...) }

// repeated says which files are read more often than the user may think: patterns may overlap.
func (d *dataset) repeated() (warnings []string) {
	seen := map[string]bool{}
	warn := func(l *source.Listing, say string) {
		if l == nil {
			return
		}
		var again []string
		for _, f := range l.Files {
			if seen[f.URI] {
				again = append(again, f.URI)
			}
			if l == d.train {
				seen[f.URI] = true
			}
		}
		if len(again) > 0 {
			warnings = append(warnings, fmt.Sprintf(say, humanize.Count(int64(len(again)), "file"), again[0]))
		}
	}
	warn(d.train, "data.train names %s more than once, such as %s: their examples are trained on each time")
	warn(d.eval, "data.eval has %s of data.train, such as %s: on examples that it was trained on, a model looks better than it is")
	return warnings
}

// withoutBytes says which compressed files have no bytes.
func (d *dataset) withoutBytes() (warnings []string) {
	if text := d.train.WithoutBytes("data.train"); text != "" {
		warnings = append(warnings, text)
	}
	if text := d.eval.WithoutBytes("data.eval"); text != "" {
		warnings = append(warnings, text)
	}
	return warnings
}

func (r *run) list(ctx context.Context, key string, uris []string) (*source.Listing, error) {
	if len(uris) == 0 {
		return nil, nil
	}
	l, err := r.data.sources.List(ctx, uris)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	r.log.Info("input listed", "key", key, "files", len(l.Files), "bytes", l.Bytes())
	return l, nil
}

// trainOptions are the reader's options for the listed training data in the given
// epoch, counted from 0, with at most limit examples (0: all).
func (r *run) trainOptions(epoch int, limit int64) reader.Options {
	o := jobparts.TrainReaderOptions(r.data.base, r.job, epoch, limit)
	o.Listing, o.Split = r.data.train, r.data.split
	return o
}

// split finds where the part of the training data begins that is held out.
func (r *run) split(ctx context.Context) error {
	share := r.job.Data.ValidationFraction
	if share == 0 {
		return nil
	}
	r.opts.Status.Begin(report.PhaseScanning, 0, 0, nil, nil)
	o := r.trainOptions(0, r.job.Data.Limit)
	o.Schema = jobparts.WithoutStatistics(o.Schema)
	split, err := reader.SplitTail(ctx, o, share)
	if err != nil {
		return fmt.Errorf("counting the rows of data.train: %w", err)
	}
	if split.Head == 0 || split.Head == split.Rows {
		return errkind.Errorf(errkind.Usage, "data.validation_fraction is %g, but data.train have %d examples, so that nothing would be left to train on or to hold out", share, split.Rows)
	}
	r.data.split = split
	r.log.Info("held out for validation", "examples", split.Rows-split.Head, "of", split.Rows)
	return nil
}
