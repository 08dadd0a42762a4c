package jobparts

import (
	"aibox/configs"
	"aibox/trainer/priority"
)

const (
	// An mfu or ssu list takes the same share of a table's memory as the paper's counters take for
	// vectors of 64 bytes (table 1). The copies of a scar list are as large as the vectors.
	priorityMemoryShare = 1. / 16
	// Up to chunkShare of the table's memory, and at most maxChunkBytes, is pinned at a time.
	chunkShare    = 1. / 32
	maxChunkBytes = 4 << 20
	// defaultTableBytes is the memory of a table on SSD if sparse_table.memory_bytes is 0.
	defaultTableBytes = 256 << 20
)

// Prioritized reports whether a job saves rows by priority.
func Prioritized(job *configs.Job) bool {
	return job.Snapshots.Priority != "" && job.Snapshots.Priority != configs.PriorityNone
}

// PriorityBytes returns upper bounds of the memory of the list, and of the rows on their way.
func PriorityBytes(job *configs.Job) (list, chunks int64) {
	if !Prioritized(job) {
		return 0, 0
	}
	table := int64(job.SparseTable.MemoryBytes)
	if table == 0 {
		table = defaultTableBytes
	}
	list = table
	if job.Snapshots.Priority != priority.SCAR {
		list = int64(priorityMemoryShare * float64(table))
	}
	return list, 2 * min(int64(chunkShare*float64(table)), maxChunkBytes) // the copies, and what is being written
}

// Announces reports whether the engine of a job is told of passes beforehand. It is not with
// priority saves, which look at the host's rows between two passes.
func Announces(job *configs.Job) bool {
	return job.Engine.Kind == "cuda" && job.Engine.Embeddings == "device" && !Prioritized(job)
}
