// Package flow moves passes through the three stages of AIBox §3, Figure 3, once over some data:
//
//	RE     reads passes, divides those whose rows would not fit (Limit), and tells the table of
//	       their keys (Announce), as far ahead as the table looks and Queues.ReadAheadBytes allows
//	ST     pulls and pins the rows of a pass. If the table's memory cannot hold them beside those
//	       of earlier passes, it waits for those to be released, or divides the pass further
//	EL+JL  has an engine work on the mini-batches of a pass in order, and releases the pass's rows
//
// Each stage is one goroutine of a pipeline.Pipeline. Training and evaluation are both a Flow, with
// different pull modes and a different Batch. They share Stages; Hooks are what a run does or
// observes between two passes. flow.go has the line and stage RE, pulling.go and splitting.go stage
// ST, learning.go stage EL+JL.
//
// # Who owns a pass
//
//	RE -> ST       the pass, with its keys announced
//	ST -> EL+JL    the pass with pinned rows (Pulled); whoever drops it releases the rows
//	engine         keys and rows from Begin to End, or, with Announces, until it calls Ended, which
//	               may be during the next pass
//
// When both the stage and the engine are done with a pass, its memory goes back to the reader, and
// Stages.Bytes falls by its size. At the end of Run, passes that were announced to the table but
// never pulled, because of an error or a stop, are withdrawn.
//
// How passes are divided, and how far ahead they are read, does not change the model.
package flow
