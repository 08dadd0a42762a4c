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
	// programBytes are the program's code and data, stacks and libraries: a job of a
	// few rows takes less than this.
	programBytes = 40 << 20
	// uniqueShare is how many of a mini-batch's feature values are taken to be
	// unique; in click logs it is less.
	uniqueShare = 0.7
	// mostLookahead is how many passes a table looks ahead at most by itself.
	mostLookahead = 100
	// textShare is what the examples of a chunk of text take, by the text, and parquetShare
	// what a worker decodes of Parquet before it hands it on, by pipeline.chunk_bytes.
	textShare    = 1.5
	parquetShare = 2
	// growthShare is what decoded examples take, by their size, since the slices that
	// they are appended to have room to spare.
	growthShare = 1.3
	// lineShare is what a buffer takes while it grows for a line, by the line: twice as much, and the
	// smaller one before it.
	lineShare = 3
	// garbageShare is how much garbage lies in memory at a time while the data are read
	// once, by what is in use: buffers that were replaced by larger ones.
	garbageShare = 0.5
	// garbageBytes is how much more garbage an example makes.
	garbageBytes = 16
)

// ForHost says how much memory a job will take at most. What its data need is computed
// from size, as SampleData finds it; where that is unknown, bags are taken to have one
// value, and the data to be so large that all queues are full.
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

// tableBytes is what the table takes, or 0 if nothing bounds it. A table that starts
// from an earlier model has the rows of that model too.
func tableBytes(job *configs.Job, p *jobparts.Parts, size DataSize) int64 {
	o := jobparts.TableOptions(job)
	o.Layout, o.SSD.Dirs = p.Layout, job.SparseTable.Dirs
	rows := size.Rows
	if size.Examples == 0 || job.Training.WarmStart != "" {
		rows = -1
	}
	return sparsetable.ForecastBytes(o, rows)
}

// engineBytes is what the engine takes of the host's memory for whole mini-batches.
func engineBytes(job *configs.Job, p *jobparts.Parts, m *model.Model, dense *optim.Dense, size DataSize) int64 {
	n := size.batch(job)
	rows := int64(uniqueShare*size.Features*float64(n)) * int64(4*p.Layout.ValueDim)
	if job.Engine.Kind == "cuda" {
		needs := deviceNeeds(job, p, m, dense, size.batch(job), 0)
		return needs.Pinned + rows
	}
	return cpu.ForecastBytes(m.Network(), n) + rows
}

// batch is how many examples the largest mini-batch has.
func (d *DataSize) batch(job *configs.Job) int {
	if d.Examples == 0 {
		return job.Training.BatchSize
	}
	return int(min(int64(job.Training.BatchSize), d.passed()))
}

// passesBytes is what passes take: one that is made, one that is pulled, one that is trained, those
// in the queues between, and the mini-batches of the next passes that are made meanwhile; but no
// more than all examples take. An engine that is told of passes beforehand has the one before and
// the one after, too.
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

// exampleBytes is what an example with that many feature values takes in a pass: see
// reader.Batch.
func exampleBytes(p *jobparts.Parts, features float64) float64 {
	fields, dense := float64(len(p.Spec.Fields)), float64(len(p.Spec.Dense))
	return 4 + 4*dense + 4*fields + (4+4)*features + (4+4+8)*uniqueShare*features
}

// ReadingBytes is what the reader has in hand: chunks of text that wait for
// their turn or are decoded, their examples, and the shuffle buffer.
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
	if job.Data.Format == "parquet" { // pages that are being decoded
		n += atMost(int64(threads)*chunk, size.Read, decoded)
	}
	return n + atMost(int64(float64(job.Data.ShuffleBuffer)*size.PassBytes), size.Examples, size.PassBytes)
}

// garbage is how much garbage lies in memory at a time, by what is in use, and by what of it a
// reading of the data has. Go's collector lets half of the memory that it manages be garbage. In a
// single reading of the data little garbage is made, and the next reading, also one that evaluates,
// turns the buffers of the one before it into garbage. Rows that are longer than a chunk make much:
// all buffers grow for them, time and again.
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
