package inference

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"aibox/internal/errkind"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/trainer/jobparts"
	"aibox/trainer/metrics"
	"aibox/trainer/program"
	"aibox/trainer/report"
)

// PredictOptions are the options of Predict.
type PredictOptions struct {
	Data    []string // URIs, in the format of the model's job
	Output  string   // .csv, .tsv or .parquet, local or HDFS; text may be compressed: .csv.gz
	Columns []string // input columns to pass through
	// KeepBadRows writes a row without a prediction for each bad row, and for each row that a
	// damaged Parquet page loses. Their number is not limited, as long as at least one row is good;
	// the job's data.max_lost_fraction limits how much may be lost. Without KeepBadRows, the first
	// bad or lost row is an error.
	KeepBadRows bool
}

// Prediction is what `aibox predict` reports.
type Prediction struct {
	ModelDir string         `json:"model_dir"`
	Digest   string         `json:"digest,omitempty"` // if the model records it
	Output   string         `json:"output"`
	Examples int64          `json:"examples"`
	Unscored int64          `json:"rows_without_prediction"` // bad rows, and lost ones of Parquet
	Mean     float64        `json:"mean_prediction"`
	Rows     report.Reading `json:"input_rows"`
}

// Columns that are written besides those passed through.
const (
	labelColumn      = "label"
	predictionColumn = "prediction"
)

// passThrough says which columns of the input are written beside the predictions.
type passThrough struct {
	columns   []string
	keepLists bool // see reader.Options
	keepBad   bool
}

// outputSchema returns the format and the schema of a file of predictions.
func outputSchema(name string, columns []string) (reader.Format, reader.Schema, error) {
	s := reader.Schema{Header: true}
	for i, c := range columns {
		if c == "" {
			return 0, s, errors.New("a column to pass through has an empty name")
		}
		if slices.Contains(columns[:i], c) {
			return 0, s, fmt.Errorf("column %q is named twice; name it once", c)
		}
		if c == labelColumn || c == predictionColumn {
			return 0, s, fmt.Errorf("column %q is always written; do not name it as a column to pass through", c)
		}
		s.Columns = append(s.Columns, reader.Column{Name: c, Role: reader.RoleIgnore})
	}
	s.Columns = append(s.Columns,
		reader.Column{Name: labelColumn, Role: reader.RoleLabel},
		reader.Column{Name: predictionColumn, Role: reader.RoleDense})
	switch f, _ := rowschema.FormatOf(name); f {
	case reader.FormatCSV, reader.FormatTSV, reader.FormatParquet:
		return f, s, nil
	}
	return 0, s, fmt.Errorf("output %s: want a name that ends in .csv, .tsv or .parquet (text also compressed: .csv.gz, .csv.zst)", name)
}

// Predict writes one row per input row, in input order: the columns passed through, the label if
// the input has one, and the predicted probability of a click. A bad row is an error, or has no
// prediction: see PredictOptions. The output appears under its name when it is complete.
func (l *Model) Predict(ctx context.Context, o PredictOptions) (*Prediction, error) {
	format, schema, err := outputSchema(o.Output, o.Columns)
	if err != nil {
		return nil, errkind.As(errkind.Usage, err)
	}
	if err := l.sources.RefuseOverwrite(ctx, o.Data, []string{o.Output}); err != nil {
		return nil, err
	}
	data, err := l.list(ctx, o.Data)
	if err != nil {
		return nil, err
	}
	keepLists := format == reader.FormatParquet && l.schema.Format == reader.FormatParquet
	if keepLists {
		from := jobparts.ReaderOptions(l.Job, l.sources, l.schema, l.opts.Logger)
		from.Listing = data
		stored, err := reader.StoredColumns(ctx, from, o.Columns)
		if err != nil {
			return nil, err
		}
		for i := range stored {
			schema.Columns[i].Stored = stored[i]
		}
	}
	file, err := reader.CreateRows(ctx, l.sources, o.Output, format, schema)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	out := &Prediction{ModelDir: l.Saved.Name, Digest: l.Saved.Digest, Output: o.Output}
	p := predictor{out: out, file: file, shift: metrics.LogitShift(l.Saved.KeptShare), cells: make([][]byte, len(schema.Columns))}
	if _, out.Rows, err = l.read(ctx, report.PhasePredicting, data, passThrough{o.Columns, keepLists, o.KeepBadRows}, p.batch); err != nil {
		err = explainBadRow(err, o.KeepBadRows)
		return nil, errors.Join(err, file.Abort())
	}
	if out.Examples == 0 { // all rows are bad: if there were no rows at all, the reader would have returned an error
		err := fmt.Errorf("none of the %d rows has the format of the data that the model was trained on; the log says what is wrong with the first of them: %w", out.Unscored, reader.ErrNoExamples)
		return nil, errors.Join(err, file.Abort())
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	out.Mean = p.sum / float64(out.Examples)
	return out, nil
}

// predictor writes mini-batches of predictions.
type predictor struct {
	out   *Prediction
	file  *reader.RowFile
	shift float32
	sum   float64
	cells [][]byte // columns, label, prediction; their memory is reused
}

func (p *predictor) batch(b *reader.Batch, logits []float32) error {
	n := len(b.Columns)
	for i := range b.N {
		for c := range b.Columns {
			p.cells[c] = append(p.cells[c][:0], b.Columns[c][i]...)
		}
		p.cells[n] = p.cells[n][:0]
		if label := float64(b.Labels[i]); !math.IsNaN(label) {
			p.cells[n] = strconv.AppendFloat(p.cells[n], label, 'g', -1, 32)
		}
		if b.Bad != nil && b.Bad[i] {
			p.cells[n+1] = p.cells[n+1][:0]
			if err := p.file.Write(p.cells); err != nil {
				return err
			}
			p.out.Unscored++
			continue
		}
		prediction := kernel.Sigmoid(logits[i] + p.shift)
		p.cells[n+1] = strconv.AppendFloat(p.cells[n+1][:0], float64(prediction), 'g', -1, 32)
		if err := p.file.Write(p.cells); err != nil {
			return err
		}
		p.sum += float64(prediction)
		p.out.Examples++
	}
	return nil
}

// explainBadRow adds a remedy to an error about a bad or lost row. To an error about a prediction
// that is not finite it adds that the row is not a bad one.
func explainBadRow(err error, keepBad bool) error {
	var bad *reader.BadRowsError
	var lost *reader.LostDataError
	switch {
	case errors.Is(err, program.ErrNotFinite) && keepBad:
		return fmt.Errorf("%w; --keep-bad-rows does not help, since this row could be read: either the model has diverged, or a number in the row is far from those that it was trained on", err)
	case errors.As(err, &bad) && !keepBad && bad.Worst.Reason == reader.ReasonOutput:
		bad.Limit = "the limit of 0 bad rows"
		return fmt.Errorf("%w: the values of its list are separated by \"|\" in text, and one of them contains that; write .parquet, which keeps lists, or leave the column out; with --keep-bad-rows the list is written all the same", err)
	case errors.As(err, &bad) && !keepBad:
		bad.Limit = "the limit of 0 bad rows"
		return fmt.Errorf("%w; with --keep-bad-rows a bad row is written without a prediction", err)
	case errors.As(err, &lost) && !keepBad:
		lost.Limit = "the limit of 0"
		return fmt.Errorf("%w; with --keep-bad-rows up to data.max_lost_fraction of the data may be lost, and the losses are reported", err)
	}
	return err
}
