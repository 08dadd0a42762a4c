package jobparts

import (
	"fmt"
	"log/slog"
	"math"
	"slices"

	"aibox/configs"
	"aibox/internal/cores"
	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// Schema returns the reader's schema of a job.
func Schema(job *configs.Job) (reader.Schema, error) {
	format, err := rowschema.ParseFormat(job.Data.Format)
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
	if s.Quoting, err = rowschema.ParseQuoting(job.Data.Quoting); err != nil {
		return s, fmt.Errorf("data.quoting: %w", err)
	}
	s.NullValues = job.Data.NullValues
	if job.Data.Label != "" {
		rule, err := job.Data.LabelRule()
		if err != nil {
			return s, fmt.Errorf("data.label: %w", err)
		}
		s.Label = reader.LabelRule{Column: rule.Column, Op: rule.Op, Value: rule.Threshold}
	}
	return s, s.Validate()
}

func column(c configs.Column) (reader.Column, error) {
	role, err := rowschema.ParseRole(c.Role)
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
		kind, err := rowschema.ParseTransform(t.Kind)
		if err != nil {
			return col, fmt.Errorf("data.columns: column %q: %w", c.Name, err)
		}
		tr := rowschema.Transform{Kind: kind, Boundaries: t.Boundaries, Min: math.Inf(-1), Max: math.Inf(1)}
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

// ReaderOptions returns the reader's options that training and evaluation share.
func ReaderOptions(job *configs.Job, sources *source.Sources, schema reader.Schema, log *slog.Logger) reader.Options {
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

// TrainReaderOptions returns the options to read data.train in the given epoch, counted from 0,
// with at most limit examples (0 for all).
func TrainReaderOptions(base reader.Options, job *configs.Job, epoch int, limit int64) reader.Options {
	base.URIs = job.Data.Train
	base.Epoch = epoch
	base.Limit = limit
	base.ShuffleBuffer = job.Data.ShuffleBuffer
	base.NegativeSampling = job.Data.NegativeSampling
	return base
}

// WithoutStatistics returns a schema for opening data, but not for training on them, before the
// data statistics are known.
func WithoutStatistics(s reader.Schema) reader.Schema {
	s.Columns = slices.Clone(s.Columns)
	for i := range s.Columns {
		s.Columns[i].Transforms = slices.Clone(s.Columns[i].Transforms)
		for j := range s.Columns[i].Transforms {
			if t := &s.Columns[i].Transforms[j]; t.Kind == rowschema.TransformStandardize && !t.HasMeanStd {
				t.Std, t.HasMeanStd = 1, true
			}
		}
	}
	return s
}

// Unjudged returns options for a first look at data: without statistics, without a limit on bad
// rows and losses, and without logging. The actual reading applies the limits.
func Unjudged(o reader.Options) reader.Options {
	o.Schema, o.Logger = WithoutStatistics(o.Schema), slog.New(slog.DiscardHandler)
	o.MaxBadRows, o.MaxBadFraction, o.MaxLostFraction = -1, 1, 1
	return o
}

// ReaderThreads returns how many threads read the data of a job.
func ReaderThreads(job *configs.Job) int {
	if n := job.Pipeline.ReaderThreads; n > 0 {
		return n
	}
	return cores.Count()
}

// Compressed reports whether a job's text is compressed, judging by file names.
func Compressed(job *configs.Job) bool {
	if job.Data.Format == "parquet" {
		return false
	}
	if c := job.Data.Compression; c != "" && c != "auto" {
		return c != "none"
	}
	return slices.ContainsFunc(slices.Concat(job.Data.Train, job.Data.Eval), func(uri string) bool {
		return source.CompressionOf(uri) != source.NoCompression
	})
}
