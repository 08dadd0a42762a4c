package trainer

import (
	"runtime"
	"strings"
	"sync/atomic"

	"aibox/configs"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// Memory is what a process takes, by purpose, in bytes: a forecast, which a job
// reaches when its data is large enough, or what a run has taken.
type Memory struct {
	Table   int64 `json:"table_bytes"`   // the embedding table; in a forecast 0 if nothing bounds it: then it grows with the rows
	Reading int64 `json:"reading_bytes"` // text and examples between files and passes, the shuffle buffer included
	Passes  int64 `json:"passes_bytes"`  // passes read, pulled and trained
	Engine  int64 `json:"engine_bytes"`  // activations, gradients and gathered rows
	Dense   int64 `json:"dense_bytes"`   // dense parameters, their gradients and optimizer state
	Runtime int64 `json:"runtime_bytes"` // the program, and what Go's collector lets lie before it collects
	Process int64 `json:"process_bytes"` // all of it; of a run: its largest resident set
}

const (
	// programBytes are the program's code and data, stacks and libraries: a job of a
	// few rows takes so much.
	programBytes = 48 << 20
	// uniqueShare is how many of a mini-batch's feature values are taken to be
	// unique; in click logs it is less.
	uniqueShare = 0.7
	// mostLookahead is how many passes a table looks ahead at most by itself.
	mostLookahead = 100
	// textShare is what the examples of a chunk of text take, by the text, and parquetShare
	// what a worker decodes of Parquet before it hands it on, by pipeline.chunk_bytes.
	textShare    = 1.5
	parquetShare = 2
)

// Forecast says how much memory a job will take at most, from its job file alone:
// that bags have one value, and that its data is large enough to fill queues.
func Forecast(job *configs.Job) (Memory, error) {
	p, err := makeParts(job)
	if err != nil {
		return Memory{}, err
	}
	m, err := model.New(p.spec)
	if err != nil {
		return Memory{}, err
	}
	dense, err := optim.NewDense(denseConfig(job.Optimizer.Dense), m.Params())
	if err != nil {
		return Memory{}, err
	}
	f := Memory{Table: int64(job.SparseTable.MemoryBytes), Dense: denseBytes(m, dense)}
	if f.Table == 0 && job.SparseTable.Kind == sparsetable.KindSSD {
		f.Table = sparsetable.DefaultSSDMemoryBytes
	}
	f.Engine = engineForecast(job, &p, m)
	f.Passes = passesForecast(job, &p)
	f.Reading = readingForecast(job, &p)
	// Half of what the collector manages may be garbage at any time.
	f.Runtime = programBytes + f.Reading + f.Passes + f.Engine + f.Dense
	f.Process = f.Table + f.Reading + f.Passes + f.Engine + f.Dense + f.Runtime
	return f, nil
}

// denseBytes is what dense parameters take with gradients and optimizer state.
func denseBytes(m *model.Model, d *optim.Dense) int64 {
	n := int64(0)
	for _, p := range m.Params() {
		n += 4 * int64(len(p.Data)+len(p.Grad))
	}
	for _, p := range m.Buffers() {
		n += 4 * int64(len(p.Data))
	}
	for _, s := range d.State() {
		n += 4 * int64(len(s.Data))
	}
	return n
}

// engineForecast is what the engine takes for whole mini-batches, in which bags have
// one value.
func engineForecast(job *configs.Job, p *parts, m *model.Model) int64 {
	n := job.Training.BatchSize
	features := n * len(p.spec.Fields)
	unique := int64(uniqueShare * float64(features))
	return cpu.ForecastBytes(m.Network(), n) + unique*int64(4*p.layout.ValueDim)
}

// passesForecast is what passes take: one that is made, one that is pulled, one
// that is trained, those in the queues between, and the mini-batches of the next passes
// that are made meanwhile.
func passesForecast(job *configs.Job, p *parts) int64 {
	pass := int64(job.Pipeline.BatchesPerPass) * int64(job.Training.BatchSize) * exampleBytes(p)
	n := pass * int64(job.Pipeline.ReadQueue+job.Pipeline.PullQueue+3)
	n += int64(readerThreads(job)+1) * int64(job.Training.BatchSize) * exampleBytes(p)
	if job.SparseTable.Kind == sparsetable.KindSSD && job.SparseTable.CachePolicy == "lookahead" {
		look := job.SparseTable.LookaheadPasses
		if look == 0 {
			look = mostLookahead
		}
		n += min(int64(job.Pipeline.ReadAheadBytes), int64(look)*pass)
	}
	return n
}

// exampleBytes is what an example takes in a pass: see reader.Batch.
func exampleBytes(p *parts) int64 {
	fields, dense := float64(len(p.spec.Fields)), float64(len(p.spec.Dense))
	return int64(4 + 4*dense + (4+4+4)*fields + (4+4+8)*uniqueShare*fields)
}

// readingForecast is what the reader has in hand: chunks of text that wait for
// their turn or are decoded, their examples, and the shuffle buffer.
func readingForecast(job *configs.Job, p *parts) int64 {
	threads := readerThreads(job)
	chunk := int64(job.Pipeline.ChunkBytes)
	blocks := int64(3*threads + 3)
	share := textShare
	if job.Data.Format == "parquet" {
		share = parquetShare
	}
	n := int64(share*float64(blocks*chunk)) + int64(threads)*chunk
	if compressed(job) {
		n += int64(reader.TextChunks(threads)) * chunk
	}
	return n + int64(job.Data.ShuffleBuffer)*exampleBytes(p)
}

func readerThreads(job *configs.Job) int {
	if n := job.Pipeline.ReaderThreads; n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// compressed says whether a job's text is compressed, as far as names tell.
func compressed(job *configs.Job) bool {
	if job.Data.Format == "parquet" {
		return false
	}
	if c := job.Data.Compression; c != "" && c != "auto" && c != "none" {
		return true
	}
	for _, uri := range append(job.Data.Train, job.Data.Eval...) {
		for _, end := range []string{".gz", ".zst", ".bz2", ".snappy", ".sz"} {
			if strings.HasSuffix(uri, end) {
				return true
			}
		}
	}
	return false
}

// gauge is a number of bytes that goes up and down, and the most it was.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(n int64) {
	now := g.now.Add(n)
	for {
		most := g.most.Load()
		if now <= most || g.most.CompareAndSwap(most, now) {
			return
		}
	}
}

// memory is what the run has taken so far.
func (r *run) memory(table sparsetable.Stats) Memory {
	m := Memory{Table: table.MemoryBytes, Passes: r.table.passBytes.most.Load(), Process: peakMemoryBytes()}
	if r.engine != nil {
		m.Engine = r.engine.MemoryBytes()
		m.Dense = denseBytes(r.model, r.state.Engine.Dense)
	}
	m.Reading = readingForecast(r.job, &r.parts) // it is not counted: at most
	m.Runtime = max(0, m.Process-m.Table-m.Passes-m.Engine-m.Dense)
	m.Reading = min(m.Reading, m.Runtime)
	m.Runtime -= m.Reading
	return m
}

// Attrs are m for a line of log.
func (m *Memory) Attrs() []any {
	return []any{"table", m.Table, "reading", m.Reading, "passes", m.Passes, "engine", m.Engine, "dense", m.Dense, "runtime", m.Runtime, "process", m.Process}
}
