package flow

import (
	"aibox/configs"
	"aibox/internal/process"
)

// Queues say how much may wait between the stages.
type Queues struct {
	ReadQueue, PullQueue int   // passes in front of ST, and of EL+JL
	ReadAheadBytes       int64 // limit on the waiting passes, if the table asks for more of them than ReadQueue
}

// One part in readAheadShare of the memory that is free is for passes that the table looks ahead
// to: the rest of the job, and garbage, need more.
const readAheadShare = 8

// QueuesOf are the queues that a job asks for, with passes ahead as there is memory for them now.
func QueuesOf(job *configs.Job) Queues {
	q := Queues{ReadQueue: job.Pipeline.ReadQueue, PullQueue: job.Pipeline.PullQueue, ReadAheadBytes: int64(job.Pipeline.ReadAheadBytes)}
	if free := process.FreeMemory(); free >= 0 {
		q.ReadAheadBytes = min(q.ReadAheadBytes, free/readAheadShare)
	}
	return q
}

// maxReadAhead bounds the passes that are read ahead, however small they are.
const maxReadAhead = 256
