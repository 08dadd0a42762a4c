// Package engine has the boundary between training and the device that computes: stage
// EL+JL (embedding learning and joint learning, AIBox §2). Package cpu is the engine that uses
// the processors of the host, and package cuda the one that uses NVIDIA devices. Rows of the table
// are worked on by package hostrows where they are in the memory of the host, and by package
// devicerows where they are in that of devices; engines share these.
//
// # Who owns what
//
// An engine works on three things:
//
//   - The pass: the pinned rows of the sparse table that its mini-batches refer to. Between
//     Begin and End they belong to the engine, which may work on them in place or on copies in
//     its own memory. End puts all changes back. Where the next pass was announced, a later call may
//     do that: rows that both share can stay where they are, and others are copied while the next
//     pass is trained. Two passes that follow one another may share rows: Begin of the second comes
//     after End of the first.
//   - The state: parameters, running statistics, optimizer state, numbers of steps. State is
//     its image in the host's memory. Between Import and Export only the engine reads and
//     writes what it stands for.
//   - The mini-batch: slices of the host that belong to the caller and that the engine does
//     not keep beyond the call that got them, unless it says so by delivering their results
//     later.
//
// # Results may be late
//
// Train and Infer hand a mini-batch over; its Result goes to the function done, in the order
// of the mini-batches, on the caller's goroutine, within this call or a later one of
// Train, Infer or End. So a device may still be busy with a step while the next one is
// prepared, and no step has to wait for another one.
//
// A mini-batch whose loss or batch statistics are not finite changes nothing: neither
// parameters nor values of rows. Later mini-batches are not trained either, and the
// error comes with the call that notices it, at the latest with End, thus before
// anything is committed. What an update makes infinite, the loss of the next step
// shows; Check looks for it after the last one.
//
// # What does not depend on values
//
// The statistics of rows (show, click, last seen, count) and what follows from them, such
// as admission, depend only on the examples: engines of any precision have the same.
package engine
