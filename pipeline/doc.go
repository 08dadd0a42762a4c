// Package pipeline connects concurrent stages by bounded queues (AIBox §3, Figure 3).
//
//	          queue            queue
//	Source ----------> Map ----------> Sink
//	  RE               ST              EL+JL
//
// A pipeline is a line of one source, any number of maps and one sink. Each stage runs on a
// goroutine of its own, so items leave in the order in which they entered. A stage stalls when the
// queue behind it is full. Build the line with Source, Map and Sink, then call Run once. A map
// turns each item into any number of items. A sink can look at the next item while it works on one.
// With Output.RunAhead a source runs further ahead than the queue's depth, within limits on the
// number of waiting items and on their bytes.
//
// # How a run ends
//
// When the source returns nil, the stages behind it finish the queued items, and Run returns nil.
// The first stage that returns an error cancels the context of every other stage; Run returns that
// error after the last goroutine has ended. Cancelling the context given to New does the same with
// the context's cause. A stage that returns ErrStop cancels the others too, but Run returns nil. A
// panic in a stage is caught and becomes a *panics.Error: the other stages still end in an orderly
// way and release what they hold.
//
// # Who owns an item
//
// An item belongs to its stage until emit is called with it, and to the next stage from the moment
// that stage's function is called with it. In between it belongs to the queue. When the run is
// cancelled, the items in queues are dropped; the function given to Output.OnDrop then gets each of
// them, exactly once. So an item that holds a resource (pinned rows) is released either by the
// stage that consumed it or by OnDrop. A stage that returns an error is still responsible for the
// item on which it was working.
//
// # Clocks
//
// Every stage has a clock with three states: busy (in its own function), starved (waiting for
// input) and blocked (waiting for room in the next queue). From the clocks, Table prints the
// paper's Table 1, and Limiting names the stage that bounds the job. Profiles and execution traces
// of the process distinguish the stages, too: samples of a stage and of the goroutines that it
// starts carry the label "stage", and its work on each item is a region of the trace.
//
// The package does not depend on what the items are.
package pipeline
