package flow

import (
	"aibox/configs"
	"aibox/internal/process"
)

// Queues are the limits on what waits between the stages.
type Queues struct {
	ReadQueue, PullQueue int   // passes in front of ST, and of EL+JL
	ReadAheadBytes       int64 // limit on the size of waiting passes, if the table looks further ahead than ReadQueue
}

// Passes that are read ahead for the table may take 1/readAheadShare of the free memory: the rest
// of the job, and garbage, need more.
const readAheadShare = 8

// QueuesOf returns the queues that a job asks for, with ReadAheadBytes limited by the memory that
// is free now.
func QueuesOf(job *configs.Job) Queues {
	q := Queues{ReadQueue: job.Pipeline.ReadQueue, PullQueue: job.Pipeline.PullQueue, ReadAheadBytes: int64(job.Pipeline.ReadAheadBytes)}
	if free := process.FreeMemory(); free >= 0 {
		q.ReadAheadBytes = min(q.ReadAheadBytes, free/readAheadShare)
	}
	return q
}

// maxReadAhead bounds the number of passes that are read ahead, however small they are.
const maxReadAhead = 256
