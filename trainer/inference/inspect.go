package inference

import (
	"context"
	"fmt"
	"math"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
)

// Inspection describes the contents of a model directory.
type Inspection struct {
	Dir          string             `json:"dir"`
	Digest       string             `json:"digest"` // computed from the files
	Manifest     modeldir.Manifest  `json:"manifest"`
	ModelKind    string             `json:"model_kind"`
	Fields       []string           `json:"fields"`
	Dense        []string           `json:"dense_features"`
	Layers       []TensorInfo       `json:"dense_parameters"`
	Parameters   int64              `json:"dense_parameter_count"`
	Precision    string             `json:"precision"` // of matrix products
	RowOptimizer string             `json:"row_optimizer"`
	Layout       sparsetable.Layout `json:"row_layout"`
	Rows         RowsInfo           `json:"rows"`
	// Faults lists damage in files that the model does not need, which are copies of rows for
	// speed. Inspect fails on damage in a file that the model needs.
	Faults []sparsetable.Fault `json:"faults"`
}

// TensorInfo describes one dense parameter.
type TensorInfo struct {
	Name  string  `json:"name"`
	Shape []int   `json:"shape"`
	RMS   float64 `json:"rms"` // root of the mean square of its values
}

// RowsInfo sums up the rows of the table.
type RowsInfo struct {
	Count       int64   `json:"count"`
	MemoryBytes int64   `json:"memory_bytes"`
	SeenOnce    int64   `json:"seen_once"`
	ValueRMS    float64 `json:"value_rms"`
	Show        float64 `json:"show"`
	Click       float64 `json:"click"`
	OldestDay   uint32  `json:"oldest_day"`
	NewestDay   uint32  `json:"newest_day"`
}

// Inspect reads and verifies everything in the model directory dir from which its digest is
// computed, and computes the digest. If a different digest is recorded, the error is a
// *modeldir.CorruptionError. With all, Inspect also reads the files that the model does not need,
// and checks the table as `aibox table verify` does.
func Inspect(ctx context.Context, dir string, all bool, opts Options) (*Inspection, error) {
	l, err := Load(ctx, dir, configs.LoadOptions{}, opts)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	in := &Inspection{
		Dir: dir, Manifest: l.Saved.Manifest, ModelKind: l.Job.Model.Kind,
		Fields: l.schema.Fields(), Dense: l.schema.DenseNames(),
		Precision: l.Job.Engine.Precision, RowOptimizer: l.Job.Optimizer.Rows.Kind, Layout: l.Table.Layout(),
	}
	for _, p := range l.Network.Params() {
		in.Layers = append(in.Layers, TensorInfo{Name: p.Name, Shape: p.Shape, RMS: rms(p.Data)})
		in.Parameters += int64(len(p.Data))
	}
	rows := sparsetable.NewDigester(l.Table.Layout())
	if in.Rows, err = l.rowsInfo(ctx, rows.Add); err != nil {
		return nil, err
	}
	in.Digest = modeldir.Digest(l.Saved.Step, l.Saved.KeptShare, l.Saved.Statistics, l.Saved.Dense, l.Saved.RowDecay.Digest(rows.Digest()))
	if l.Saved.Digest != "" && in.Digest != l.Saved.Digest {
		return nil, &modeldir.CorruptionError{File: dir, Offset: -1, Reason: fmt.Sprintf("its digest is %s, but %s was recorded when it was saved", in.Digest, l.Saved.Digest)}
	}
	if all {
		in.Faults, err = l.verifyTable(ctx)
	}
	return in, err
}

// verifyTable verifies the model's table. It closes l.Table for that.
func (l *Model) verifyTable(ctx context.Context) ([]sparsetable.Fault, error) {
	held, err := l.Saved.HoldTable(ctx, l.opts.Logger)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if err := l.Table.Close(); err != nil { // verification needs its memory
		return nil, err
	}
	o, err := l.Saved.TableOptions(jobparts.TableOptions(l.Job))
	if err != nil {
		return nil, err
	}
	faults := []sparsetable.Fault{}
	_, err = sparsetable.Verify(ctx, o, func(f sparsetable.Fault) { faults = append(faults, f) }, nil)
	return faults, err
}

// rowsInfo summarizes the rows of the table, decayed up to the last step. It calls each for every
// row as stored.
func (l *Model) rowsInfo(ctx context.Context, each func(key uint64, row []float32)) (RowsInfo, error) {
	t := l.Table
	layout := t.Layout()
	settle := func(values, row []float32) {}
	if l.decay != nil {
		now := l.decay.At(l.Saved.Step)
		settle = func(values, row []float32) { now.Settle(values, layout.State(row)) }
	}
	info := RowsInfo{OldestDay: math.MaxUint32}
	squares := 0.0
	values := make([]float32, layout.ValueDim)
	err := t.Scan(ctx, func(key uint64, row []float32) error {
		each(key, row)
		st := layout.Stats(row)
		info.Count++
		if st.Count == 1 {
			info.SeenOnce++
		}
		info.Show += float64(st.Show)
		info.Click += float64(st.Click)
		info.OldestDay = min(info.OldestDay, st.LastSeen)
		info.NewestDay = max(info.NewestDay, st.LastSeen)
		layout.LoadValues(values, row)
		settle(values, row)
		for _, v := range values {
			squares += float64(v) * float64(v)
		}
		return nil
	})
	if info.Count == 0 {
		info.OldestDay = 0
	} else {
		info.ValueRMS = math.Sqrt(squares / float64(info.Count) / float64(layout.ValueDim))
	}
	info.MemoryBytes = t.Stats().MemoryBytes
	return info, err
}

func rms(x []float32) float64 {
	if len(x) == 0 {
		return 0
	}
	s := 0.0
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return math.Sqrt(s / float64(len(x)))
}
