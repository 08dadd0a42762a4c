package forecast

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"

	"aibox/configs"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
)

// DataSize is the input of a forecast of memory: how much data a job reads, as estimated from the
// beginning of the data. In the zero value nothing is known.
type DataSize struct {
	Files    int     // of data.train
	Bytes    int64   // stored bytes of data.train
	Sampled  int64   // examples that were read
	Examples int64   // of one epoch, estimated from the sample; 0 if unknown
	Eval     int64   // rows of data.eval, estimated from the same sample
	Read     int64   // rows of the longest reading, including rows that no epoch has; 0 if unknown
	Features float64 // feature values of an example
	Rows     int64   // estimated number of rows that the table gets, rather too large than too small

	PassBytes float64 // bytes of an example in a pass
	LineBytes float64 // bytes of text of a row; 0: unknown, or the data are no text
}

const (
	// sampleExamples is how many examples are read for a forecast.
	sampleExamples = 32 << 10
	// leastTextBytes is the least that a feature value takes in a text, with its separator.
	leastTextBytes = 2
	// sampleChunkBytes is small, so that the share of the data that was read is known precisely.
	sampleChunkBytes = 64 << 10
)

// sampleBytes is the most stored bytes from which these examples are taken, since rows may be very
// long. Tests lower it.
var sampleBytes int64 = 256 << 20

// ensureDefaults fills in assumptions about unknown data.
func (d *DataSize) ensureDefaults(p *jobparts.Parts) {
	if d.Features == 0 {
		d.Features = float64(len(p.Spec.Fields))
	}
	if d.PassBytes == 0 {
		d.PassBytes = exampleBytes(p, d.Features)
	}
}

// passed returns how many examples reach training or evaluation in one reading; 0 if unknown.
func (d *DataSize) passed() int64 {
	if d.Examples == 0 {
		return 0
	}
	return max(d.Examples, d.Eval)
}

// atMost returns n, or the size of the given number of examples if that is known and smaller.
func atMost(n, examples int64, exampleBytes float64) int64 {
	if examples == 0 {
		return n
	}
	return int64(min(float64(n), math.Ceil(exampleBytes*float64(examples))))
}

// SampleData lists a job's data and samples them: see Sample.
func SampleData(ctx context.Context, job *configs.Job) (DataSize, error) {
	if !isLocal(job) { // listing remote data takes time
		return DataSize{}, nil
	}
	sources := jobsource.New(job, slog.New(slog.DiscardHandler))
	defer sources.Close() //nolint:errcheck // nothing was written
	train, err := sources.List(ctx, job.Data.Train)
	if err != nil {
		return DataSize{}, err
	}
	var eval *source.Listing
	if len(job.Data.Eval) > 0 {
		if eval, err = sources.List(ctx, job.Data.Eval); err != nil {
			eval = nil // training reports what is wrong with them
		}
	}
	return Sample(ctx, job, sources, train, eval)
}

// isLocal reports whether all data of a job are local files.
func isLocal(job *configs.Job) bool {
	return !slices.ContainsFunc(slices.Concat(job.Data.Train, job.Data.Eval), func(uri string) bool { return !source.IsLocal(uri) })
}

// Sample reads the beginning of a job's training data, if they are local files. Data that cannot be
// read, or are elsewhere, have an unknown size: training reports what is wrong with them. eval is
// nil if data.eval is not given or could not be listed.
func Sample(ctx context.Context, job *configs.Job, sources *source.Sources, train, eval *source.Listing) (DataSize, error) {
	if !isLocal(job) {
		return DataSize{}, nil
	}
	schema, err := jobparts.Schema(job)
	if err != nil {
		return DataSize{}, err
	}
	o := jobparts.Unjudged(jobparts.TrainReaderOptions(jobparts.ReaderOptions(job, sources, schema, slog.New(slog.DiscardHandler)), job, 0, sampleExamples))
	o.Listing, o.Threads, o.ShuffleBuffer, o.GroupBy = train, 1, 0, ""
	o.ChunkBytes = min(o.ChunkBytes, sampleChunkBytes)
	rd, err := reader.Open(ctx, o)
	if err != nil {
		return DataSize{}, err
	}
	defer rd.Close() //nolint:errcheck // nothing was written
	d := DataSize{Files: len(train.Files), Bytes: train.Bytes()}
	if err := d.read(ctx, rd, job); err != nil || d.Examples == 0 || len(job.Data.Eval) == 0 {
		return d, err
	}
	d.Eval = math.MaxInt64
	if eval != nil {
		d.Eval = int64(float64(d.Read) * float64(eval.Bytes()) / float64(max(1, d.Bytes)))
	}
	d.Read = max(d.Read, d.Eval)
	return d, nil
}

// read counts the contents of the passes of rd, and extrapolates to all data.
func (d *DataSize) read(ctx context.Context, rd *reader.Reader, job *configs.Job) error {
	unique := map[uint64]struct{}{}
	var examples, rows []float64 // after each pass
	features, bytes := 0, int64(0)
	ended := false
	for rd.Counts().BytesRead < sampleBytes {
		pass, err := rd.Next(ctx)
		if errors.Is(err, io.EOF) {
			ended = d.Sampled < sampleExamples
			break
		}
		if err != nil {
			return err
		}
		for i := range pass.Batches {
			d.Sampled += int64(pass.Batches[i].N)
			features += pass.Batches[i].Features()
		}
		for _, key := range pass.Keys {
			unique[key] = struct{}{}
		}
		bytes += pass.MemoryBytes()
		examples, rows = append(examples, float64(d.Sampled)), append(rows, float64(len(unique)))
	}
	d.Features = float64(features) / float64(d.Sampled)
	d.PassBytes = float64(bytes) / float64(d.Sampled)
	counts := rd.Counts()
	if job.Data.Format != "parquet" {
		// The length of compressed text is unknown, but a feature takes leastTextBytes at least.
		d.LineBytes = max(float64(counts.BytesRead)/float64(max(1, counts.Rows)), leastTextBytes*d.Features)
	}
	kept := float64(d.Sampled) / float64(max(1, counts.Rows))
	switch all, known := rd.TotalRows(); {
	case ended:
		d.Examples, d.Read = d.Sampled, counts.Rows
	case known:
		d.Examples, d.Read = int64(kept*float64(all)), all
	case counts.BytesRead > 0:
		times := float64(d.Bytes) / float64(counts.BytesRead)
		d.Examples, d.Read = int64(float64(d.Sampled)*times), int64(float64(counts.Rows)*times)
	}
	for _, limit := range []int64{job.Data.Limit, job.Training.MaxExamples} {
		if limit > 0 {
			d.Examples = min(d.Examples, limit)
		}
	}
	d.Rows = int64(extrapolate(examples, rows, float64(d.Examples)))
	return nil
}

// extrapolate estimates how many unique values n examples have, from the numbers of unique values
// after the first examples. These grow as a power of the number of examples (Heaps' law), with an
// exponent that falls as fewer values are new. So the exponent between the middle and the end of
// the sample gives too many rather than too few.
func extrapolate(examples, unique []float64, n float64) float64 {
	last := len(examples) - 1
	if last < 0 {
		return 0
	}
	middle := last
	for middle > 0 && examples[middle] > examples[last]/2 {
		middle--
	}
	exponent := 1.0
	if middle < last && unique[middle] > 0 {
		exponent = math.Log(unique[last]/unique[middle]) / math.Log(examples[last]/examples[middle])
	}
	return unique[last] * math.Pow(max(1, n/examples[last]), exponent)
}
