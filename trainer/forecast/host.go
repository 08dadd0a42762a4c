package forecast

import (
	"aibox/configs"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

const (
	// programBytes covers the program's code and data, stacks and libraries: a job with a few rows
	// takes less than this.
	programBytes = 40 << 20
	// uniqueShare is the assumed share of unique values among a mini-batch's feature values; in
	// click logs it is smaller.
	uniqueShare = 0.7
	// mostLookahead is the largest number of passes that a table looks ahead by itself.
	mostLookahead = 100
	// textShare is the size of the examples of a chunk of text relative to the text. parquetShare
	// is what a worker decodes from Parquet before it passes it on, relative to
	// pipeline.chunk_bytes.
	textShare    = 1.5
	parquetShare = 2
	// growthShare is the memory of decoded examples relative to their size, since the slices that
	// they are appended to have spare capacity.
	growthShare = 1.3
	// lineShare is what a buffer takes, relative to a line, while it grows to hold the line: twice as
	// much, and the smaller buffer before it.
	lineShare = 3
	// garbageShare is the amount of garbage relative to the memory in use while the data are read
	// once: buffers that were replaced by larger ones.
	garbageShare = 0.5
	// garbageBytes is the additional garbage per example.
	garbageBytes = 16
)

// ForHost returns an upper bound of the memory that a job will take. What its data need is computed
// from size, as SampleData returns it. If that is unknown, bags are assumed to have one value, and
// the data to be large enough to fill all queues.
func ForHost(job *configs.Job, size DataSize) (Memory, error) {
	p, err := jobparts.Make(job)
	if err != nil {
		return Memory{}, err
	}
	m, dense, err := outline(job, p.Spec)
	if err != nil {
		return Memory{}, err
	}
	size.ensureDefaults(&p)
	f := Memory{Dense: DenseBytes(m, dense), Table: tableBytes(job, &p, size)}
	if job.Snapshots.Interval() != (configs.SnapshotInterval{}) {
		f.Dense += savedBytes(m, dense)
	}
	f.Engine = engineBytes(job, &p, m, dense, size)
	f.Passes = passesBytes(job, size)
	f.Reading = ReadingBytes(job, &p, size)
	list, chunks := jobparts.PriorityBytes(job)
	f.Priority = list + chunks
	beside := f.Reading + f.Passes + f.Priority + f.Engine + f.Dense
	f.Runtime = programBytes + garbage(job, size, beside, f.Reading+f.Passes)
	f.Process = f.Table + beside + f.Runtime
	return f, nil
}

// tableBytes returns the memory of the table, or 0 if nothing bounds it. A table that starts from
// an earlier model has the rows of that model, too.
func tableBytes(job *configs.Job, p *jobparts.Parts, size DataSize) int64 {
	o := jobparts.TableOptions(job)
	o.Layout, o.SSD.Dirs = p.Layout, job.SparseTable.Dirs
	rows := size.Rows
	if size.Examples == 0 || job.Training.WarmStart != "" {
		rows = -1
	}
	return sparsetable.ForecastBytes(o, rows)
}

// engineBytes returns the host memory that the engine takes for full mini-batches.
func engineBytes(job *configs.Job, p *jobparts.Parts, m *model.Model, dense *optim.Dense, size DataSize) int64 {
	n := size.batch(job)
	rows := int64(uniqueShare*size.Features*float64(n)) * int64(4*p.Layout.ValueDim)
	if job.Engine.Kind == "cuda" {
		needs := deviceNeeds(job, p, m, dense, size.batch(job), 0)
		return needs.Pinned + rows
	}
	return cpu.ForecastBytes(m.Network(), n) + rows
}

// batch returns the number of examples in the largest mini-batch.
func (d *DataSize) batch(job *configs.Job) int {
	if d.Examples == 0 {
		return job.Training.BatchSize
	}
	return int(min(int64(job.Training.BatchSize), d.passed()))
}

// passesBytes returns the memory of passes: one being made, one being pulled, one being trained,
// those in the queues between, and the mini-batches of later passes that are made meanwhile, but no
// more than all examples take. An engine that is told of passes beforehand also has the previous
// and the next one.
func passesBytes(job *configs.Job, size DataSize) int64 {
	pass := int64(size.PassBytes * float64(job.Pipeline.BatchesPerPass*job.Training.BatchSize))
	queues := flow.QueuesOf(job)
	passes := queues.ReadQueue + queues.PullQueue + 3
	if jobparts.Announces(job) {
		passes += 2
	}
	n := pass * int64(passes)
	n += int64(float64((jobparts.ReaderThreads(job)+1)*job.Training.BatchSize) * size.PassBytes)
	if job.SparseTable.Kind == sparsetable.KindSSD && job.SparseTable.CachePolicy == "lookahead" {
		look := job.SparseTable.LookaheadPasses
		if look == 0 {
			look = mostLookahead
		}
		n += min(queues.ReadAheadBytes, int64(look)*pass)
	}
	return atMost(n, size.passed(), size.PassBytes)
}

// exampleBytes returns the size in a pass of an example with the given number of feature values:
// see reader.Batch.
func exampleBytes(p *jobparts.Parts, features float64) float64 {
	fields, dense := float64(len(p.Spec.Fields)), float64(len(p.Spec.Dense))
	return 4 + 4*dense + 4*fields + (4+4)*features + (4+4+8)*uniqueShare*features
}

// ReadingBytes returns the memory of the reader: chunks of text that wait for their turn or are
// being decoded, their examples, and the shuffle buffer.
func ReadingBytes(job *configs.Job, p *jobparts.Parts, size DataSize) int64 {
	size.ensureDefaults(p)
	threads := jobparts.ReaderThreads(job)
	chunk := int64(job.Pipeline.ChunkBytes)
	blocks := float64(3*threads + 3)
	decoded := growthShare * (4 + 4*float64(len(p.Spec.Dense)+len(p.Spec.Fields)) + 8*size.Features)
	share := textShare
	if job.Data.Format == "parquet" {
		share = parquetShare
	}
	// A block has a whole row, and a worker a whole line, however long it is.
	n := atMost(int64(blocks*max(share*float64(chunk), decoded)), size.Read, decoded)
	n += atMost(int64(threads)*max(chunk, int64(lineShare*size.LineBytes)), size.Read, decoded+lineShare*size.LineBytes)
	if jobparts.Compressed(job) {
		chunk = max(chunk, int64(size.LineBytes))
		n += atMost(int64(reader.TextChunks(threads))*chunk, size.Read, decoded)
	}
	if job.Data.Format == "parquet" { // pages being decoded
		n += atMost(int64(threads)*chunk, size.Read, decoded)
	}
	return n + atMost(int64(float64(job.Data.ShuffleBuffer)*size.PassBytes), size.Examples, size.PassBytes)
}

// garbage returns how much garbage is in memory at a time. used is the memory in use, and ofReading
// the part of it that belongs to a reading of the data. Go's collector lets half of the memory that
// it manages be garbage. A single reading of the data makes little garbage, but the next reading,
// including one that evaluates, turns the buffers of the one before into garbage. Rows longer than
// a chunk make much garbage, because all buffers grow for them again and again.
func garbage(job *configs.Job, size DataSize, used, ofReading int64) int64 {
	if size.Examples == 0 || job.Training.Epochs > 1 || size.LineBytes > float64(job.Pipeline.ChunkBytes) {
		return used
	}
	n := int64(garbageShare*float64(used)) + garbageBytes*size.Read
	if len(job.Data.Eval) > 0 || job.Data.ValidationFraction > 0 {
		n += ofReading
	}
	return min(used, n)
}
