package trainer

import (
	"fmt"
	"log/slog"
	"math"
	"slices"

	"aibox/configs"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// This file turns a job, which configs has checked, into the options of the
// packages that do the work. Nothing else in trainer reads data or model
// settings from a job.

// tableOptions are the options of a job's table, except its place and the layout of its
// rows.
func tableOptions(job *configs.Job) sparsetable.Options {
	t := &job.SparseTable
	return sparsetable.Options{
		Kind: t.Kind, MemoryBytes: int64(t.MemoryBytes),
		SSD: sparsetable.SSDOptions{
			CachePolicy: t.CachePolicy, LookaheadPasses: t.LookaheadPasses, MaxSpaceAmplification: t.MaxSpaceAmplification,
			DirBudgetBytes: int64(t.DirBudgetBytes), HotBytes: int64(t.HotBytes), QueueDepth: t.QueueDepth, Direct: t.DirectIO,
		},
	}
}

// Schema is the reader's schema of a job.
func Schema(job *configs.Job) (reader.Schema, error) {
	format, err := reader.ParseFormat(job.Data.Format)
	if err != nil {
		return reader.Schema{}, err
	}
	s := reader.Schema{Format: format}
	for _, c := range job.Data.Columns {
		col, err := column(c)
		if err != nil {
			return s, err
		}
		s.Columns = append(s.Columns, col)
	}
	if job.Data.Header != nil {
		s.Header = *job.Data.Header
	}
	if job.Data.Delimiter != "" {
		s.Delimiter = job.Data.Delimiter[0]
	}
	if s.Quoting, err = reader.ParseQuoting(job.Data.Quoting); err != nil {
		return s, fmt.Errorf("data.quoting: %w", err)
	}
	s.NullValues = job.Data.NullValues
	if job.Data.Label != "" {
		rule, err := configs.ParseLabel(job.Data.Label)
		if err != nil {
			return s, fmt.Errorf("data.label: %w", err)
		}
		s.Label = reader.LabelRule{Column: rule.Column, Op: rule.Op, Value: rule.Threshold}
	}
	return s, s.Validate()
}

func column(c configs.Column) (reader.Column, error) {
	role, err := reader.ParseRole(c.Role)
	if err != nil {
		return reader.Column{}, fmt.Errorf("data.columns: column %q: %w", c.Name, err)
	}
	col := reader.Column{
		Name: c.Name, Role: role,
		Separator: c.Separator, WeightSeparator: c.WeightSeparator, Space: c.Space,
	}
	if x, ok := c.Missing.Number(); ok {
		col.Missing = float32(x)
	}
	col.Indicator = c.Missing == configs.MissingIndicator
	if len(c.Range) == 2 {
		col.IndexRange, col.HasIndexRange = [2]int64{c.Range[0], c.Range[1]}, true
	}
	if c.Field != nil {
		col.FieldNumber, col.HasFieldNumber = *c.Field, true
	}
	for _, t := range c.Transform {
		kind, err := reader.ParseTransform(t.Kind)
		if err != nil {
			return col, fmt.Errorf("data.columns: column %q: %w", c.Name, err)
		}
		tr := reader.Transform{Kind: kind, Boundaries: t.Boundaries, Min: math.Inf(-1), Max: math.Inf(1)}
		if t.Mean != nil && t.Std != nil {
			tr.Mean, tr.Std, tr.HasMeanStd = *t.Mean, *t.Std, true
		}
		if t.Min != nil {
			tr.Min = *t.Min
		}
		if t.Max != nil {
			tr.Max = *t.Max
		}
		col.Transforms = append(col.Transforms, tr)
	}
	return col, nil
}

// readerOptions are the reader's options that training and evaluation share.
func readerOptions(job *configs.Job, sources *source.Sources, schema reader.Schema, log *slog.Logger) reader.Options {
	return reader.Options{
		Sources: sources, Schema: schema, Compression: job.Data.Compression,
		BatchSize: job.Training.BatchSize, BatchesPerPass: job.Pipeline.BatchesPerPass,
		Seed: job.Seed, NegativeSampling: 1, GroupBy: job.Data.GroupBy,
		MaxBadRows: job.Data.MaxBadRows, MaxBadFraction: job.Data.MaxBadFraction, MaxLostFraction: job.Data.MaxLostFraction,
		QuarantineRows: job.Data.QuarantineRows, HideCells: job.Data.QuarantineRows == 0, MaxLineBytes: int(job.Data.MaxLineBytes),
		ChunkBytes: int64(job.Pipeline.ChunkBytes), Threads: job.Pipeline.ReaderThreads,
		Logger: log,
	}
}

// trainReaderOptions are the options to read data.train in the given epoch, counted
// from 0, with at most limit examples (0: all).
func trainReaderOptions(base reader.Options, job *configs.Job, epoch int, limit int64) reader.Options {
	base.URIs = job.Data.Train
	base.Epoch = epoch
	base.Limit = limit
	base.ShuffleBuffer = job.Data.ShuffleBuffer
	base.NegativeSampling = job.Data.NegativeSampling
	return base
}

// modelSpec is the network of a job over the fields and dense columns of schema.
func modelSpec(job *configs.Job, schema *reader.Schema) (model.Spec, error) {
	m := job.Model
	spec := model.Spec{
		Kind: m.Kind, Fields: schema.Fields(), Dense: schema.DenseNames(), EmbeddingDim: m.EmbeddingDim,
		BottomLayers: m.BottomLayers, HiddenLayers: m.HiddenLayers,
		CrossLayers: m.CrossLayers, CrossRank: m.CrossRank, Structure: m.Structure,
		Activation: m.Activation, Dropout: m.Dropout, BatchNorm: m.BatchNorm, Pooling: m.Pooling, Seed: job.Seed,
		DenseVectors: m.DenseVectors, EmbeddingActivation: m.EmbeddingActivation,
	}
	for _, c := range job.SparseColumns() {
		spec.Poolings = append(spec.Poolings, c.Pooling)
	}
	for _, t := range m.Towers {
		tower := model.Tower{Name: t.Name, Layers: t.Layers}
		columns := job.TowerColumns(&t)
		for _, name := range columns {
			tower.Dense = append(tower.Dense, slices.Index(spec.Dense, name))
		}
		for _, name := range columns {
			if i := slices.Index(spec.Dense, reader.IndicatorName(name)); i >= 0 {
				tower.Dense = append(tower.Dense, i)
			}
		}
		spec.Towers = append(spec.Towers, tower)
	}
	return spec, spec.Validate()
}

func denseConfig(o configs.DenseOptimizer) optim.DenseConfig {
	return optim.DenseConfig{
		Kind: o.Kind, LearningRate: o.LearningRate, Momentum: o.Momentum, Beta1: o.Beta1, Beta2: o.Beta2,
		Epsilon: o.Epsilon, InitialAccumulator: o.InitialAccumulator, L2: o.L2, WeightDecay: o.WeightDecay,
		Averaging: o.Averaging,
	}
}

func rowConfig(o configs.RowOptimizer) optim.RowConfig {
	return optim.RowConfig{
		Kind: o.Kind, LearningRate: o.LearningRate, Beta1: o.Beta1, Beta2: o.Beta2,
		Epsilon: o.Epsilon, InitialAccumulator: o.InitialAccumulator, L2: o.L2, WeightDecay: o.WeightDecay, TableL2: o.TableL2,
		FTRLL1: o.FTRLL1, FTRLL2: o.FTRLL2, FTRLBeta: o.FTRLBeta,
	}
}

// linearOptimizer is the optimizer of the linear weights of dense features, if they have one of their own.
func linearOptimizer(job *configs.Job) []optim.Own {
	if job.Optimizer.Linear == nil {
		return nil
	}
	return []optim.Own{{Param: model.LinearWeight, Config: rowConfig(*job.Optimizer.Linear)}}
}

func scheduleConfig(s configs.Schedule) optim.ScheduleConfig {
	return optim.ScheduleConfig{
		WarmupSteps: s.WarmupSteps, Decay: s.Decay, DecaySteps: s.DecaySteps, DecayRate: s.DecayRate, Floor: s.Floor,
	}
}
