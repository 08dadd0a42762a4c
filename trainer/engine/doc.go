// Package engine defines the boundary between training and the device that computes: stage EL+JL
// (embedding learning and joint learning, AIBox §2). Package cpu is the engine that uses the
// processors of the host, and package cuda the one that uses NVIDIA devices. Both share package
// hostrows, which works on table rows in host memory, and package devicerows, which works on those
// in device memory.
//
// # Who owns what
//
// An engine works on three things:
//
//   - The pass: the pinned rows of the sparse table that its mini-batches refer to. Between
//     Begin and End they belong to the engine, which may work on them in place or on copies in
//     its own memory. End writes all changes back. If the next pass was announced, a later call
//     may do that instead: rows that both passes share can stay where they are, and others are
//     copied while the next pass is trained. Two consecutive passes may share rows; Begin of the
//     second comes after End of the first.
//   - The state: parameters, running statistics, optimizer state, step counts. State is its
//     image in the host's memory. Between Import and Export only the engine reads and writes
//     what that image stands for.
//   - The mini-batch: host slices that belong to the caller. The engine does not keep them
//     beyond the call that got them, unless it delivers their results later.
//
// # Results may be late
//
// Train and Infer hand a mini-batch over. Its Result goes to the function done, in the order of the
// mini-batches, on the caller's goroutine, within this call or a later call of Train, Infer or End.
// So a device may still be busy with a step while the next one is prepared, and steps do not wait
// for one another.
//
// A mini-batch whose loss or batch statistics are not finite changes nothing: neither parameters
// nor values of rows. Later mini-batches are not trained either. The error comes with the call that
// notices it, at the latest with End, and thus before anything is committed. If an update makes a
// value infinite, the loss of the next step shows it; after the last step, Check looks for it.
//
// # What does not depend on values
//
// The statistics of rows (show, click, last seen, count) and what follows from them, such as
// admission, depend only on the examples, so they are the same for engines of any precision.
package engine
