package clicklog

import (
	"context"
	"slices"
	"strings"

	"aibox/internal/errkind"
	"aibox/internal/generate"
)

// Plan says how many examples go where. Train examples are spread evenly over
// the days, and in that order over the train files; eval examples are further
// ones of the last day, so that they are drawn from the same model as the end
// of training but never seen by it.
type Plan struct {
	Train, Eval         []string // files
	TrainRows, EvalRows int64
	Days                int
}

// Result is what was written and how well the true probabilities predict it.
type Result struct {
	Name  string         `json:"name"` // train or eval
	Files []string       `json:"files"`
	Truth generate.Truth `json:"true_probabilities"`
}

// checkFiles refuses patterns before the first file is written.
func (p *Plan) checkFiles() error {
	var files []string
	if p.TrainRows > 0 {
		files = append(files, p.Train...)
	}
	if p.EvalRows > 0 {
		files = append(files, p.Eval...)
	}
	if i := slices.IndexFunc(files, func(uri string) bool { return strings.ContainsAny(uri, "*?[") }); i >= 0 {
		return errkind.Errorf(errkind.Job, "%s is a pattern; name in data.train and data.eval the files to write, or one with --output", files[i])
	}
	return nil
}

// WriteJob writes the files of a plan.
func (w *Writer) WriteJob(ctx context.Context, p Plan, progress func(file string, rows int64)) ([]Result, error) {
	if err := p.checkFiles(); err != nil {
		return nil, err
	}
	var results []Result
	perDay := (p.TrainRows + int64(p.Days) - 1) / int64(p.Days)
	for _, set := range []struct {
		name  string
		files []string
		rows  int64
		at    func(from, to int64) []Part
	}{
		{"train", p.Train, p.TrainRows, func(from, to int64) []Part { return daysOf(perDay, from, to) }},
		{"eval", p.Eval, p.EvalRows, func(from, to int64) []Part {
			return []Part{{Day: p.Days - 1, First: perDay + from, Count: to - from}}
		}},
	} {
		if len(set.files) == 0 || set.rows == 0 {
			continue
		}
		meter := generate.NewMeter()
		for i, uri := range set.files {
			n := int64(len(set.files))
			parts := set.at(set.rows*int64(i)/n, set.rows*int64(i+1)/n)
			if err := w.Write(ctx, uri, parts, meter, func(rows int64) { progress(uri, rows) }); err != nil {
				return nil, err
			}
		}
		results = append(results, Result{Name: set.name, Files: set.files, Truth: meter.Truth()})
	}
	return results, nil
}

// daysOf divides the examples from..to of a log with perDay examples a day into parts, one
// for each day.
func daysOf(perDay, from, to int64) []Part {
	var parts []Part
	for from < to {
		day := from / perDay
		end := min(to, (day+1)*perDay)
		parts = append(parts, Part{Day: int(day), First: from - day*perDay, Count: end - from})
		from = end
	}
	return parts
}
