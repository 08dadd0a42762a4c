package trainer

import (
	"context"
	"fmt"

	"aibox/reader"
	"aibox/reader/source"
)

// inputs are the data of a run as they were listed at its start. The check of the
// data, the scan, every epoch and every evaluation read exactly these files: files that
// arrive during the run are ignored, and a file that changes ends the run.
type inputs struct {
	train, eval *source.Listing // eval is nil without data.eval
}

// listData lists the data of the run.
func (r *run) listData(ctx context.Context) (err error) {
	if r.input.eval, err = r.list(ctx, "data.eval", r.job.Data.Eval); err != nil {
		return err
	}
	r.input.train, err = r.list(ctx, "data.train", r.job.Data.Train)
	return err
}

func (r *run) list(ctx context.Context, key string, uris []string) (*source.Listing, error) {
	if len(uris) == 0 {
		return nil, nil
	}
	l, err := r.sources.List(ctx, uris)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	r.log.Info("input listed", "key", key, "files", len(l.Files), "bytes", l.Bytes())
	return l, nil
}

// trainOptions are the reader's options for the listed training data in the given
// epoch, counted from 0, with at most limit examples (0: all).
func (r *run) trainOptions(epoch int, limit int64) reader.Options {
	o := trainReaderOptions(r.base, r.job, epoch, limit)
	o.Listing = r.input.train
	return o
}
