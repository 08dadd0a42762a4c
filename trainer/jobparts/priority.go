package jobparts

import (
	"aibox/configs"
	"aibox/trainer/priority"
)

const (
	// Of a table's memory, an mfu or ssu list takes as much as the counters of the paper, for
	// vectors of 64 bytes (table 1). The copies of a scar list are as large as the vectors.
	priorityMemoryShare = 1. / 16
	// chunkShare of the table's memory, and at most maxChunkBytes, is how much is pinned at a time.
	chunkShare    = 1. / 32
	maxChunkBytes = 4 << 20
	// defaultTableBytes is sparse_table.memory_bytes of a table on SSD where that is 0.
	defaultTableBytes = 256 << 20
)

// Prioritized reports whether a job saves rows by priority.
func Prioritized(job *configs.Job) bool {
	return job.Snapshots.Priority != "" && job.Snapshots.Priority != configs.PriorityNone
}

// PriorityBytes is what the list and the rows on their way take at most.
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
	return list, 2 * min(int64(chunkShare*float64(table)), maxChunkBytes) // copies, and what is written
}

// Announces says whether the engine of a job makes use of being told of passes beforehand. Priority
// saves look at the rows of the host between two passes.
func Announces(job *configs.Job) bool {
	return job.Engine.Kind == "cuda" && job.Engine.Embeddings == "device" && !Prioritized(job)
}
