package trainer

import (
	"fmt"
	"slices"
	"strings"

	"aibox/configs"
	"aibox/internal/cores"
	"aibox/internal/humanize"
	"aibox/pipeline"
	"aibox/sparsetable"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
)

// coresBusy is the utilization of the cores from which on a job counts as bound by them: more
// threads would not make it faster.
const coresBusy = 0.8

// bound describes which stage bounded the speed of a job, and which settings would change that.
// stages are those of an epoch, busy is the share of the cores' time that the process used in it,
// and files is the number of training files. The text is empty if no stage has worked.
func bound(job *configs.Job, stages []pipeline.StageStats, busy float64, files int) string {
	count := cores.Count()
	load := fmt.Sprintf("while the %d cores were busy for %.0f %% of the time", count, 100*min(busy, 1))
	switch pipeline.Limiting(stages) {
	case flow.StageRead:
		return "reading, " + load + ": " + fasterReading(job, count, busy, files)
	case flow.StageTable:
		return "the table, " + load + ": " + fasterTable(job)
	case flow.StageLearn:
		name := "training, "
		if read, train := stages[0].Busy, stages[len(stages)-1].Busy; busy >= coresBusy && 2*read > train {
			name = "training and, hardly less, reading, "
		}
		return name + load + ": " + fasterTraining(job, count, busy)
	}
	return ""
}

func fasterReading(job *configs.Job, cores int, busy float64, files int) string {
	threads := jobparts.ReaderThreads(job)
	switch {
	case busy >= coresBusy:
		return "use more cores, or leave out columns that are not needed (role: ignore)"
	case threads < cores:
		return fmt.Sprintf("increase pipeline.reader_threads, which is %d, or set it to 0", threads)
	case jobparts.Compressed(job) && files < min(threads, 8):
		return fmt.Sprintf("one thread decompresses a file, and data.train has %d; use more and smaller files, or files that are not compressed", files)
	default:
		return fmt.Sprintf("the files are on something slow, or other programs use the cores; if the files come over a network, increase pipeline.reader_threads, so that more than %d parts of them are read at a time", threads)
	}
}

func fasterTable(job *configs.Job) string {
	if job.SparseTable.Kind == sparsetable.KindSSD {
		return fmt.Sprintf("increase sparse_table.memory_bytes, which is %s, or add SSDs to sparse_table.dirs", humanize.Bytes(int64(job.SparseTable.MemoryBytes)))
	}
	return fmt.Sprintf("increase pipeline.batches_per_pass, which is %d, so that a row is looked up once for more examples", job.Pipeline.BatchesPerPass)
}

func fasterTraining(job *configs.Job, cores int, busy float64) string {
	const enough = 512 // examples in a mini-batch beyond which more gain little (measured with dlrm)
	var list []string
	if n := job.Pipeline.ComputeThreads; n > 0 && n < cores && busy < coresBusy {
		return fmt.Sprintf("increase pipeline.compute_threads, which is %d, or set it to 0", n)
	}
	if n := job.Training.BatchSize; n < enough {
		list = append(list, fmt.Sprintf("increase training.batch_size, which is %d", n))
	}
	if job.Engine.Kind == "cuda" && job.Engine.Embeddings == "cpu" {
		list = append(list, "set engine.embeddings to device, if the memory of the devices has room for the rows of two passes")
	}
	if layers := slices.Concat(job.Model.BottomLayers, job.Model.HiddenLayers); len(layers) > 0 {
		list = append(list, fmt.Sprintf("make the layers of the model smaller, which are %v", layers))
	}
	if n := job.Model.EmbeddingDim; n > 0 && job.Model.Kind != "lr" {
		list = append(list, fmt.Sprintf("decrease model.embedding_dim, which is %d", n))
	}
	if busy >= coresBusy {
		list = append(list, "use more cores")
	} else if cores > 1 { // the cores wait, or other programs use them
		list = append(list, "leave the cores to this job, if other programs use them")
	}
	return strings.Join(list, ", or ")
}
