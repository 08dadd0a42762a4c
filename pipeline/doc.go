// Package pipeline connects stages that work at the same time by bounded
// queues (AIBox §3, Figure 3).
//
// A pipeline is a line: one source, any number of maps, one sink, each run by
// one goroutine of its own. A stage stalls when the queue behind it is full.
// The first error cancels every stage; Wait returns that error after the last
// goroutine has ended. Every stage keeps a clock of three states, busy (in its
// own function), starved (waiting for input) and blocked (waiting for room in
// the next queue), from which Table prints the paper's Table 1 and Limiting
// names the stage that bounds the job.
//
// The package knows nothing of what flows through it.
package pipeline
