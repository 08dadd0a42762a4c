package forecast

import (
	"fmt"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/sparsetable"
)

// String lists the memory of the process by purpose.
func (m *Memory) String() string {
	saved := ""
	if m.Priority > 0 {
		saved = fmt.Sprintf("rows to be saved by priority %s, ", humanize.Bytes(m.Priority))
	}
	return fmt.Sprintf("table %s, reading %s, passes %s, %sengine %s, dense part %s, runtime %s",
		humanize.Bytes(m.Table), humanize.Bytes(m.Reading), humanize.Bytes(m.Passes), saved, humanize.Bytes(m.Engine), humanize.Bytes(m.Dense), humanize.Bytes(m.Runtime))
}

// Excess returns a text that names the key of the job to lower if a job may take more memory than
// the process can have (most, in bytes; negative means unknown), and otherwise "". Garbage does not
// count, since little of it is left uncollected if memory is scarce.
func (m *Memory) Excess(job *configs.Job, most int64) string {
	least := *m
	least.Process -= m.Runtime - programBytes
	least.Runtime = programBytes
	if most < 0 || least.Process <= most {
		return ""
	}
	beside := ""
	if m.Table == 0 {
		beside = ", and for the table, which grows with the rows"
	}
	otherwise := "Linux kills it"
	if job.SparseTable.Kind == sparsetable.KindSSD && least.Process-most <= m.Table-m.Table/leastTableShare {
		otherwise = "the cache of its table stays smaller"
	}
	return fmt.Sprintf("the job may need %s of memory (%s)%s, and the process can have %s; if that is not enough, %s: %s, or let the job have more memory",
		humanize.Bytes(least.Process), &least, beside, humanize.Bytes(most), otherwise, m.advice(job))
}

// leastTableShare: if memory is scarce, a table on SSD works with 1/leastTableShare of its memory.
const leastTableShare = 8

// advice says how to make the largest part of the memory smaller.
func (m *Memory) advice(job *configs.Job) string {
	ssd := job.SparseTable.Kind == sparsetable.KindSSD
	largest, advice := m.Engine, "lower training.batch_size"
	if m.Reading > largest {
		largest, advice = m.Reading, "lower pipeline.chunk_bytes or pipeline.reader_threads"
		if job.Data.ShuffleBuffer > 0 {
			advice = "lower data.shuffle_buffer"
		}
	}
	if m.Passes > largest {
		largest, advice = m.Passes, "lower pipeline.batches_per_pass"
		if ssd && job.Pipeline.ReadAheadBytes > 0 {
			advice = "lower pipeline.read_ahead_bytes"
		}
	}
	if m.Dense > largest {
		largest, advice = m.Dense, fewerLayers
	}
	if m.Table > largest {
		advice = "set sparse_table.kind: ssd"
		if ssd {
			advice = "lower sparse_table.memory_bytes"
		}
	}
	return advice
}
